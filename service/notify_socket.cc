// SPDX-License-Identifier: Apache-2.0
#include "service/notify_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewire::service {

void NotifySocket::Send(absl::string_view lines) const {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  (void)!sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address), size);
  close(fd);
}

void NotifySocket::State(bool ready, const std::string& status) {
  threading::MutexLock lock(&mutex_);
  const bool starts = ready && !std::exchange(started_, started_ || ready);
  if (stopping_ || (!starts && status == status_)) return;
  status_ = status;
  Send(absl::StrCat(starts ? "READY=1\n" : "", "STATUS=", status));
}

void NotifySocket::Stopping(const std::string& status) {
  threading::MutexLock lock(&mutex_);
  stopping_ = true;
  Send(absl::StrCat("STOPPING=1\nSTATUS=", status));
}

}  // namespace tilewire::service
