// SPDX-License-Identifier: Apache-2.0
#include "service/front/open_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::service {
namespace {

constexpr int kBacklog = 4096;
// The server itself has some 15 open, and keeps as many back; the rest is for connections.
constexpr int64_t kLeastDescriptors = 64;
constexpr int kReservedDescriptors = 16;

std::string AddressText(const std::string& host, int port) {
  const bool ipv6 = absl::StrContains(host, ':');
  return absl::StrCat(ipv6 ? "[" : "", host, ipv6 ? "]" : "", ":", port);
}

absl::Status BindError(int error, const std::string& host, int port) {
  const std::string where = absl::StrCat("cannot listen on ", AddressText(host, port));
  const std::string what = absl::StrCat(where, ": ");
  switch (error) {
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat(what, "the port is in use"));
    case EACCES:
      return absl::PermissionDeniedError(
          absl::StrCat(what, "this user may not use the port; ports below 1024 need a right"));
    case EADDRNOTAVAIL:
      return absl::FailedPreconditionError(absl::StrCat(what, "this machine has no such address"));
    default:
      return absl::ErrnoToStatus(error, where);
  }
}

absl::StatusOr<int> BoundSocket(const addrinfo& address, const std::string& host, int port) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return BindError(errno, host, port);
  const int on = 1, off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // after a restart
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  close(fd);
  return BindError(error, host, port);
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int64_t DescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

absl::Status CheckDescriptors() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (DescriptorLimit() >= kLeastDescriptors) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the process may have ", DescriptorLimit(), " descriptors, and at least ",
                   kLeastDescriptors, " are needed: raise `ulimit -n` or LimitNOFILE"));
}

// The kernel gives the lowest number that is free.
bool TakesFromReserve(int fd) { return fd >= DescriptorLimit() - kReservedDescriptors; }

absl::StatusOr<OpenPort> ListenOn(const std::string& host, int port) {
  std::string name = host;
  if (absl::StartsWith(name, "[") && absl::EndsWith(name, "]")) {
    name = name.substr(1, name.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &hints, &found)) {
    const std::string why =
        absl::StrCat("cannot listen on ", AddressText(name, port), ": ", gai_strerror(error));
    return error == EAI_AGAIN ? absl::UnavailableError(why) : absl::InvalidArgumentError(why);
  }
  const absl::StatusOr<int> fd = BoundSocket(*found, name, port);
  freeaddrinfo(found);
  if (!fd.ok()) return fd.status();
  return OpenPort{.socket = *fd, .port = PortOf(*fd)};
}

}  // namespace tilewire::service
