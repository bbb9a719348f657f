// SPDX-License-Identifier: Apache-2.0
#include "service/front/connection_table.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

constexpr size_t kIpv6Prefix = 8;  // bytes

// 0 if the descriptor is closed. A socket's is not given again for a long time.
uint64_t InodeOf(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const in_addr& ipv4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return std::string(reinterpret_cast<const char*>(&ipv4), sizeof(ipv4));
  }
  if (address.ss_family != AF_INET6) return "";
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&ipv6);
  if (IN6_IS_ADDR_V4MAPPED(&ipv6)) return std::string(bytes + 12, sizeof(in_addr));
  return std::string(bytes, kIpv6Prefix);
}

bool ConnectionTable::Add(int fd, const std::string& peer) {
  // A new connection has the number of one that was closed.
  const auto before = connections_.find(fd);
  if (before != connections_.end()) Erase(before);
  if (most_per_peer_ > 0) {
    const auto known = peers_.find(peer);
    if (known != peers_.end() && known->second.connections >= most_per_peer_) EraseClosed(peer);
    if (peers_[peer].connections >= most_per_peer_) return false;
  }
  connections_[fd] = {InodeOf(fd), peer};
  ++peers_[peer].connections;
  return true;
}

int ConnectionTable::Open() const {
  int open = 0;
  for (const auto& [fd, connection] : connections_) {
    open += connection.inode != 0 && InodeOf(fd) == connection.inode ? 1 : 0;
  }
  return open;
}

ConnectionTable::Connections::iterator ConnectionTable::Erase(Connections::iterator connection) {
  const auto peer = peers_.find(connection->second.peer);
  if (--peer->second.connections == 0) peers_.erase(peer);
  return connections_.erase(connection);
}

void ConnectionTable::EraseClosed(const std::string& peer) {
  Peer& known = peers_[peer];
  const absl::Time now = SteadyNow();
  if (now - known.looked < kLookPause) return;
  known.looked = now;
  for (auto it = connections_.begin(); it != connections_.end();) {
    const bool gone = it->second.peer == peer && InodeOf(it->first) != it->second.inode;
    it = gone ? Erase(it) : std::next(it);
  }
}

}  // namespace tilewire::service
