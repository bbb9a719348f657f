// SPDX-License-Identifier: Apache-2.0
#include "service/front/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr int kBacklog = 4096;
// The server itself has some 15 open, and keeps as many back; the rest is for connections.
constexpr int64_t kLeastDescriptors = 64;
// How long the port rests when the process has no descriptor left for accept() itself.
constexpr int kRestMilliseconds = 20;
constexpr absl::Duration kLogPause = absl::Seconds(5);

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

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& host, int port,
                                                         int most_per_peer) {
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
  absl::StatusOr<int> fd = BoundSocket(*found, name, port);
  freeaddrinfo(found);
  if (!fd.ok()) return fd.status();
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return std::unique_ptr<Listener>(new Listener(*fd, wakeup, PortOf(*fd), most_per_peer));
}

void Listener::Start(absl::AnyInvocable<void(int)> take) {
  take_ = std::move(take);
  thread_ = std::make_unique<threading::BackgroundThread>("tw-accept", [this] { Accept(); });
}

void Listener::Stop() {
  if (std::exchange(stopped_, true)) return;
  eventfd_write(wakeup_, 1);
  thread_ = nullptr;
  close(socket_);
  close(wakeup_);
}

void Listener::Accept() {
  pollfd polled[2] = {{socket_, POLLIN, 0}, {wakeup_, POLLIN, 0}};
  while (true) {
    poll(polled, 2, -1);
    if (polled[1].revents != 0) return;
    if (!AcceptOne()) poll(&polled[1], 1, kRestMilliseconds);
  }
}

// Returns false if the process has no descriptor left for a connection that is to be refused.
bool Listener::AcceptOne() {
  sockaddr_storage from = {};
  socklen_t size = sizeof(from);
  const int fd =
      accept4(socket_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (exhausted) Report("the process has no descriptor left");
    return !exhausted;  // else the peer has gone
  }
  // The kernel gives the lowest number that is free.
  const bool above = fd >= DescriptorLimit() - kReservedDescriptors;
  if (above || !connections_.Add(fd, PeerOf(from))) {
    close(fd);
    Report(above ? "the process has too few descriptors" : "a peer has as many as it may");
    return true;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  take_(fd);
  return true;
}

void Listener::Report(const char* why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (SteadyNow() - reported_ < kLogPause) return;
  reported_ = SteadyNow();
  spdlog::warn("connections are refused: {}; {} so far", why, refused());
}

}  // namespace tilewire::service
