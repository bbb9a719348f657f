// SPDX-License-Identifier: Apache-2.0
#include "service/trace/held_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

// Names of models and ids of requests are for the owner and the group.
constexpr mode_t kTraceFileMode = 0640;

// Both forms are told apart from other JSON within these.
constexpr size_t kFirstBytes = 256;

bool BeginsAsChrome(absl::string_view text) {
  return absl::StartsWith(text, "[\n{\"name\":\"request\",\"cat\":\"inference\",\"ph\":\"X\",");
}

bool BeginsAsTriton(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[\n{\"id\":")) return false;
  while (!text.empty() && absl::ascii_isdigit(text.front())) text.remove_prefix(1);
  return absl::StartsWith(text, ",\"model_name\":");
}

absl::Status NoTrace(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, " ", what, ", and would be replaced; move it away, or name another file for traces"));
}

absl::Status InUse(const std::string& path) {
  return absl::UnavailableError(absl::StrCat(
      path, " is in use: another server writes its traces there; name another file, or end it"));
}

// Whether there are traces in it, and nothing else.
absl::StatusOr<bool> HasTraces(int fd, const std::string& path) {
  char bytes[kFirstBytes];
  const ssize_t count = pread(fd, bytes, sizeof(bytes), 0);
  if (count < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  const absl::string_view text(bytes, count);
  if (absl::StartsWith(kEmptyTrace, text)) return false;
  if (BeginsAsChrome(text) || BeginsAsTriton(text)) return true;
  return NoTrace(path, "holds something else than traces of this server's");
}

// Whether something is there, which is a file and no link to one.
absl::StatusOr<bool> IsThere(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return false;
  if (S_ISREG(found.st_mode)) return true;
  return NoTrace(path,
                 S_ISLNK(found.st_mode) ? "is a link that leads to no file" : "is not a file");
}

bool IsBelow(const fs::path& path, absl::string_view folder) {
  return absl::StartsWith(path.string(), absl::StrCat(folder, "/"));
}

}  // namespace

absl::StatusOr<std::string> ResolveTracePath(const std::string& given) {
  std::error_code error;
  const fs::path whole = fs::absolute(given, error).lexically_normal();
  const fs::path resolved = fs::weakly_canonical(whole, error);
  for (const char* folder : {"/dev", "/proc"}) {
    if (IsBelow(whole, folder) || IsBelow(resolved, folder)) {
      return absl::InvalidArgumentError(absl::StrCat(
          given, " is not a file for traces: it is below ", folder, "; name one elsewhere"));
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot open ", given));
  return resolved.string();
}

absl::Status CheckMayBeReplaced(const std::string& path) {
  ABSL_ASSIGN_OR_RETURN(const bool is_there, IsThere(path));
  if (!is_there) return absl::OkStatus();
  const int fd = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  const absl::Cleanup end = [fd] { close(fd); };
  return HasTraces(fd, path).status();
}

absl::StatusOr<std::unique_ptr<HeldFile>> HeldFile::Take(const std::string& path) {
  ABSL_RETURN_IF_ERROR(IsThere(path).status());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kTraceFileMode);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  auto file = std::unique_ptr<HeldFile>(new HeldFile(fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return InUse(path);
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
  }
  // Its holder has renamed it between the two calls.
  if (!file->IsAt(path)) return InUse(path);
  ABSL_ASSIGN_OR_RETURN(file->had_traces_, HasTraces(fd, path));
  return file;
}

HeldFile::~HeldFile() { close(fd_); }

bool HeldFile::IsAt(const std::string& path) const {
  struct stat held = {}, found = {};
  return fstat(fd_, &held) == 0 && lstat(path.c_str(), &found) == 0 &&
         held.st_ino == found.st_ino && held.st_dev == found.st_dev;
}

}  // namespace tilewire::service
