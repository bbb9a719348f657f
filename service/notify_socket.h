// SPDX-License-Identifier: Apache-2.0
//
// Tells the service manager that started this process (systemd, Type=notify) what it does:
// datagrams of lines such as READY=1 to the socket that NOTIFY_SOCKET names, as sd_notify(3)
// describes them. libsystemd would send them too, and bring libraries for compression and
// encryption into the image.
#ifndef SERVICE_NOTIFY_SOCKET_H_
#define SERVICE_NOTIFY_SOCKET_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {

// Thread-safe. What cannot be sent is lost: no server depends on it.
class NotifySocket {
 public:
  // The path of the socket, '@' in front for an abstract one; null or empty: nothing listens.
  explicit NotifySocket(const char* socket) : socket_(socket == nullptr ? "" : socket) {}

  // Sets the text of `systemctl status`. At the first `ready`, the service has started.
  void State(bool ready, const std::string& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stopping(const std::string& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Send(absl::string_view lines) const;

  const std::string socket_;
  threading::Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false, stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_NOTIFY_SOCKET_H_
