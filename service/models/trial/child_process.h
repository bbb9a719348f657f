// SPDX-License-Identifier: Apache-2.0
//
// A process that this one starts, and the socket between the two. Thread-compatible.
#ifndef SERVICE_MODELS_TRIAL_CHILD_PROCESS_H_
#define SERVICE_MODELS_TRIAL_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tilewire::service {

class ChildProcess {
 public:
  // Runs `program` with one argument. Its standard input and output are the socket, its standard
  // error is /dev/null; it has no other descriptor. The signals that this thread blocks are blocked
  // in it too.
  //   kUnavailable  the system starts none; the message says why
  static absl::StatusOr<ChildProcess> Start(const std::string& program,
                                            const std::string& argument);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills it, unless it has ended

  // False where it does not take them: it has ended, or reads nothing for a second.
  bool Write(absl::string_view bytes) const;
  // Appends what has come, after `longest` at the latest. False at the end of what it writes.
  bool Read(absl::Duration longest, std::string* bytes) const;
  // The status of waitpid() once it has ended; nothing while it runs.
  std::optional<int> PollEnd();
  int KillAndWait();

 private:
  ChildProcess(pid_t process, int socket) : process_(process), socket_(socket) {}

  pid_t process_;  // -1: it has ended, and has been waited for
  int socket_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TRIAL_CHILD_PROCESS_H_
