// SPDX-License-Identifier: Apache-2.0
//
// The port: accepts connections on a thread of its own and hands them on. gRPC 1.51's own accept
// loop never accepts again once a descriptor could not be had; this one keeps a reserve of
// descriptors for the process's own use and closes at once the connections that would take from it,
// and those of a peer that has as many as it may.
#ifndef SERVICE_FRONT_LISTENER_H_
#define SERVICE_FRONT_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "service/front/connection_table.h"

namespace tilewire::service {

// Raises the process's soft limit of descriptors to the hard one.
//   kResourceExhausted  it is too low for the server itself and a few connections
absl::Status CheckDescriptors();

class Listener {
 public:
  static constexpr int kReservedDescriptors = 16;

  // `host` is a name or a numeric address, also in brackets; port 0 takes any that is free.
  //   kInvalidArgument    no such host
  //   kUnavailable        no name server answers, or the port is in use
  //   kFailedPrecondition the address belongs to another machine
  //   kPermissionDenied   the port may not be used
  // `most_per_peer`: connections that one peer may have open at a time; 0: no bound.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& host, int port,
                                                        int most_per_peer = 0);
  ~Listener() { Stop(); }

  int port() const { return port_; }

  // Calls `take` with the descriptor of each connection, which it owns from then on.
  void Start(absl::AnyInvocable<void(int)> take);
  // Closes the port. Connections that were accepted live on.
  void Stop();
  // How many of those that were accepted are still open; after Stop().
  int OpenConnections() const { return connections_.Open(); }

  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Listener(int socket, int wakeup, int port, int most_per_peer)
      : socket_(socket), wakeup_(wakeup), port_(port), connections_(most_per_peer) {}
  void Accept();
  bool AcceptOne();
  void Report(const char* why);

  const int socket_, wakeup_;
  const int port_;
  std::atomic<int64_t> refused_{0};
  absl::AnyInvocable<void(int)> take_;
  // Both are of the accepting thread until Stop().
  ConnectionTable connections_;
  absl::Time reported_ = absl::InfinitePast();
  std::unique_ptr<threading::BackgroundThread> thread_;
  bool stopped_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_LISTENER_H_
