// SPDX-License-Identifier: Apache-2.0
#include "service/models/trial/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/models/trial/trial_frames.h"

namespace tilewire::service {
namespace {

constexpr timeval kLongestWrite = {.tv_sec = 1, .tv_usec = 0};

absl::Status NotStarted(int error) {
  return absl::UnavailableError(absl::StrCat("the system starts no process: ", strerror(error)));
}

// The error of posix_spawn(), or 0.
int Spawn(const std::string& program, const std::string& argument, int socket, pid_t* process) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  // A terminal's interrupt is for the server, which ends this process itself.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const std::string name = "tilewire-server";
  char* const arguments[] = {const_cast<char*>(name.c_str()), const_cast<char*>(argument.c_str()),
                             nullptr};
  const int error =
      posix_spawn(process, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::string& program,
                                                 const std::string& argument) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return NotStarted(errno);
  pid_t process = -1;
  const int error = Spawn(program, argument, sockets[1], &process);
  close(sockets[1]);
  if (error != 0) {
    close(sockets[0]);
    return NotStarted(error);
  }
  setsockopt(sockets[0], SOL_SOCKET, SO_SNDTIMEO, &kLongestWrite, sizeof(kLongestWrite));
  return ChildProcess(process, sockets[0]);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), socket_(std::exchange(other.socket_, -1)) {}

ChildProcess::~ChildProcess() {
  if (process_ > 0) KillAndWait();
  if (socket_ >= 0) close(socket_);
}

bool ChildProcess::Write(absl::string_view bytes) const { return SendAll(socket_, bytes); }

bool ChildProcess::Read(absl::Duration longest, std::string* bytes) const {
  pollfd polled = {.fd = socket_, .events = POLLIN, .revents = 0};
  // A time below 0 would be without an end.
  const int64_t milliseconds = std::max<int64_t>(absl::ToInt64Milliseconds(longest), 0);
  if (poll(&polled, 1, static_cast<int>(milliseconds)) <= 0) return true;
  char piece[4096];
  const ssize_t size = recv(socket_, piece, sizeof(piece), MSG_DONTWAIT);
  if (size < 0) return errno == EINTR || errno == EAGAIN;
  bytes->append(piece, size);
  return size > 0;
}

std::optional<int> ChildProcess::PollEnd() {
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return std::nullopt;
  process_ = -1;
  return status;
}

int ChildProcess::KillAndWait() {
  kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  return status;
}

}  // namespace tilewire::service
