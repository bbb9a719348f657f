// SPDX-License-Identifier: Apache-2.0
//
// The connections that were accepted, and how many of them each peer has open. gRPC closes a
// connection's descriptor without telling, so the table asks the kernel whether a descriptor still
// is what it was. Thread-compatible.
#ifndef SERVICE_FRONT_CONNECTION_TABLE_H_
#define SERVICE_FRONT_CONNECTION_TABLE_H_

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tilewire::service {

// The peer that a connection is counted under: an IPv4 address, or the first 64 bits of an IPv6
// address, which one client may have whole.
std::string PeerOf(const sockaddr_storage& address);

class ConnectionTable {
 public:
  // How long a peer that has all it may is refused without another look at its connections.
  static constexpr absl::Duration kLookPause = absl::Milliseconds(10);

  // `most_per_peer` 0: no bound.
  explicit ConnectionTable(int most_per_peer) : most_per_peer_(most_per_peer) {}

  // Adds a connection. Returns false, and adds nothing, if its peer has as many open as it may.
  bool Add(int fd, const std::string& peer);
  // How many are still open.
  int Open() const;

 private:
  struct Connection {
    uint64_t inode;
    std::string peer;
  };
  struct Peer {
    int connections = 0;  // some of them may have been closed since the last look
    absl::Time looked = absl::InfinitePast();
  };
  using Connections = std::map<int, Connection>;

  Connections::iterator Erase(Connections::iterator connection);
  void EraseClosed(const std::string& peer);

  const int most_per_peer_;
  Connections connections_;  // by descriptor
  std::map<std::string, Peer> peers_;
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_CONNECTION_TABLE_H_
