// SPDX-License-Identifier: Apache-2.0
#include "service/front/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "service/front/open_port.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// How long the port rests when the process has no descriptor left for accept() itself.
constexpr int kRestMilliseconds = 20;
constexpr absl::Duration kLogPause = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& host, int port,
                                                         int most_per_peer) {
  const absl::StatusOr<OpenPort> open = ListenOn(host, port);
  if (!open.ok()) return open.status();
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return std::unique_ptr<Listener>(new Listener(open->socket, wakeup, open->port, most_per_peer));
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
    if (exhausted) Report(ConnectionRefusal::kDescriptors);
    return !exhausted;  // else the peer has gone
  }
  const bool above = TakesFromReserve(fd);
  if (above || !Add(fd, PeerOf(from))) {
    close(fd);
    Report(above ? ConnectionRefusal::kDescriptors : ConnectionRefusal::kPeer);
    return true;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  take_(fd);
  return true;
}

bool Listener::Add(int fd, const std::string& peer) {
  threading::MutexLock lock(&mutex_);
  return connections_.Add(fd, peer);
}

void Listener::Report(ConnectionRefusal why) {
  refused_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  if (SteadyNow() - reported_ < kLogPause) return;
  reported_ = SteadyNow();
  spdlog::warn("connections are refused: {}; {} so far",
               why == ConnectionRefusal::kPeer ? "a peer has as many as it may"
                                               : "the process has too few descriptors",
               Refused(why));
}

}  // namespace tilewire::service
