// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::StatusCode::kResourceExhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case EBUSY:
    case EXDEV:
      return absl::StatusCode::kFailedPrecondition;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status Failed(const std::string& path, int error) {
  return absl::Status(CodeOf(error), absl::StrCat("cannot write '", path, "': ", strerror(error)));
}

std::string FolderOfNew(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// False where the system does not say, and of a link, which a rename replaces.
bool IsMountPoint(const std::string& path) {
  struct statx there;
  return statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &there) == 0 &&
         (there.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// The name of a renamed file is on the disk once its folder is. A folder that takes files but may
// not be read is left to the system, which brings it there later.
int SyncFolder(const std::string& path) {
  const int folder = open(FolderOfNew(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return errno == EACCES ? 0 : errno;
  const int error = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  return error;
}

}  // namespace

absl::Status NewFile::CheckPlace(const std::string& path) {
  if (path.empty() || path.back() == '/')
    return InvalidArgument("'", path, "' is not a file's path");
  struct stat there;
  const bool exists = stat(path.c_str(), &there) == 0;
  if (!exists) return errno == ENOENT ? absl::OkStatus() : Failed(path, errno);
  if (!S_ISREG(there.st_mode))
    return InvalidArgument("'", path, "' is not a regular file, and would be replaced by one");
  if (!IsMountPoint(path)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "'", path, "' is a mount point, which a new file cannot replace: mount its folder instead"));
}

absl::StatusOr<NewFile> NewFile::Create(const std::string& path) {
  ABSL_RETURN_IF_ERROR(CheckPlace(path));
  static std::atomic<uint64_t> number = 0;
  while (true) {
    std::string written = absl::StrCat(path, ".", getpid(), ".", ++number, ".new");
    const int descriptor =
        open(written.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor >= 0) return NewFile(descriptor, path, std::move(written));
    if (errno != EEXIST) return Failed(path, errno);
  }
}

NewFile::NewFile(int descriptor, std::string path, std::string written)
    : descriptor_(descriptor), path_(std::move(path)), written_(std::move(written)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      written_(std::exchange(other.written_, "")) {}

NewFile::~NewFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!written_.empty()) unlink(written_.c_str());
}

absl::Status NewFile::Error(int error) const { return Failed(path_, error); }

absl::Status NewFile::SetMode(mode_t mode) {
  return fchmod(descriptor_, mode) == 0 ? absl::OkStatus() : Error(errno);
}

absl::Status NewFile::Append(const void* bytes, int64_t count) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = write(descriptor_, from, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error(errno);
    from += written;
    count -= written;
  }
  return absl::OkStatus();
}

absl::Status NewFile::Finish() {
  if (fsync(descriptor_) != 0) return Error(errno);
  // Some file systems report only now that a write failed.
  if (close(std::exchange(descriptor_, -1)) != 0) return Error(errno);
  return absl::OkStatus();
}

absl::Status NewFile::Publish(bool replaces) {
  // A link is refused where a file is.
  const int placed =
      replaces ? rename(written_.c_str(), path_.c_str()) : link(written_.c_str(), path_.c_str());
  if (placed != 0) return Error(errno);
  if (!replaces) unlink(written_.c_str());
  written_.clear();
  const int error = SyncFolder(path_);
  return error == 0 ? absl::OkStatus() : Error(error);
}

void NewFile::Withdraw() {
  if (written_.empty() && !path_.empty()) unlink(path_.c_str());
}

}  // namespace tilewire::reader
