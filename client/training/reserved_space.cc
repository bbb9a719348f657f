// SPDX-License-Identifier: Apache-2.0
#include "client/training/reserved_space.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

std::string FolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// A new file without a name, open for writing; negative and errno: none.
int OpenUnnamed(const std::string& path) {
  const int unnamed = open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  const bool is_unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL;
  if (unnamed >= 0 || !is_unknown) return unnamed;
  const std::string name = absl::StrCat(path, ".", getpid(), ".space.new");
  const int named = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (named >= 0) unlink(name.c_str());
  return named;
}

absl::Status NoSpace(const std::string& path, int64_t bytes, const std::string& why) {
  return absl::ResourceExhaustedError(absl::StrCat("the file takes ", BytesText(bytes), " in '",
                                                   ShownText(FolderOf(path)), "': ", why));
}

// Has the file take so many bytes, or asks whether they are free where none can be taken.
absl::Status Reserve(int descriptor, const std::string& path, int64_t bytes) {
  int error = 0;
  do {
    error = fallocate(descriptor, 0, 0, bytes) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == 0) return absl::OkStatus();
  struct statvfs disk;  // of no blocks at all: the file system does not count them, as ramfs
  const bool is_known = fstatvfs(descriptor, &disk) == 0 && disk.f_blocks > 0;
  const int64_t free =
      is_known ? static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize) : 0;
  const std::string left =
      is_known ? absl::StrCat(BytesText(free), " are free") : "how much is free is not known";
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return NoSpace(path, bytes, absl::StrCat(std::strerror(error), "; ", left));
  if (error != EOPNOTSUPP && error != ENOSYS)
    return absl::ErrnoToStatus(error, absl::StrCat("cannot reserve ", BytesText(bytes)));
  return !is_known || free >= bytes ? absl::OkStatus() : NoSpace(path, bytes, left);
}

}  // namespace

absl::StatusOr<ReservedSpace> ReservedSpace::Take(const std::string& path, int64_t bytes) {
  ReservedSpace space(OpenUnnamed(path));
  if (space.descriptor_ < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make a file in '", ShownText(FolderOf(path)), "'"));
  }
  if (bytes <= 0) return space;
  if (absl::Status status = Reserve(space.descriptor_, path, bytes); !status.ok()) return status;
  return space;
}

void ReservedSpace::GiveBack() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace tilewire::client
