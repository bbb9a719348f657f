// SPDX-License-Identifier: Apache-2.0
#include "service/models/uploads/upload_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "tilewire-uploads-";
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

absl::Status CheckFolder(const std::string& folder) {
  struct stat status;
  // A slash at the end would follow a link.
  const std::string bare = folder.substr(0, std::max<size_t>(folder.find_last_not_of('/') + 1, 1));
  if (lstat(bare.c_str(), &status) != 0)
    return absl::NotFoundError(absl::StrCat("--upload_dir=", folder, ": ", strerror(errno)));
  if (S_ISLNK(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--upload_dir=", folder, " is a link; name the folder itself"));
  }
  if (!S_ISDIR(status.st_mode))
    return absl::NotFoundError(absl::StrCat("--upload_dir=", folder, " is not a folder"));
  return absl::OkStatus();
}

// The folders of processes that have ended; those that live hold a lock.
void RemoveLeftovers(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!absl::StartsWith(it->path().filename().string(), kPrefix)) continue;
    const int lock = open(it->path().c_str(), kFolderFlags);
    if (lock < 0) continue;
    std::error_code ignored;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) fs::remove_all(it->path(), ignored);
    close(lock);
  }
}

absl::Status Failed(const std::string& name, int error) {
  const std::string text = absl::StrCat("file ", name, " cannot be stored: ", strerror(error));
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return is_full ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

absl::Status WriteAll(int file, absl::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(name, errno);
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

// Into <upload>/<version>/<name>, where there is nothing yet.
absl::Status WriteFile(int upload, const UploadedFile& file) {
  const std::string version = absl::StrCat(file.version);
  const std::string shown = absl::StrCat(version, "/", file.name);
  if (mkdirat(upload, version.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return Failed(shown, errno);
  const int folder = openat(upload, version.c_str(), kFolderFlags);
  if (folder < 0) return Failed(shown, errno);
  const int written = openat(folder, file.name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR);
  const int error = errno;
  close(folder);
  if (written < 0) return Failed(shown, error);
  const absl::Status status = WriteAll(written, file.bytes, shown);
  if (close(written) != 0 && status.ok()) return Failed(shown, errno);
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UploadFolder>> UploadFolder::Open(const std::string& folder,
                                                                 int64_t most_bytes) {
  ABSL_RETURN_IF_ERROR(CheckFolder(folder));
  // One start at a time: a fresh folder has no lock yet.
  const int starting = open(folder.c_str(), kFolderFlags);
  const absl::Cleanup end = [starting] {
    if (starting >= 0) close(starting);
  };
  if (starting >= 0) flock(starting, LOCK_EX);
  RemoveLeftovers(folder);
  std::string path = (fs::path(folder) / absl::StrCat(kPrefix, "XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("--upload_dir=", folder, ": no folder can be made there: ", strerror(errno)));
  }
  const int lock = open(path.c_str(), kFolderFlags);
  if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("--upload_dir=", folder, ": ", strerror(errno)));
  }
  return std::unique_ptr<UploadFolder>(new UploadFolder(std::move(path), lock, most_bytes));
}

UploadFolder::~UploadFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(lock_);
}

absl::StatusOr<std::string> UploadFolder::Write(const std::vector<UploadedFile>& files) {
  int64_t bytes = 0, held = 0;
  for (const UploadedFile& file : files) bytes += static_cast<int64_t>(file.bytes.size());
  for (const auto& [path, size] : bytes_) held += size;
  if (bytes > most_bytes_ - held) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the files have ", bytes, " bytes, and those of other uploads ", held,
                     "; together they may have ", most_bytes_, " (--max_upload_mb)"));
  }
  const std::string path = (fs::path(path_) / absl::StrCat(next_++)).string();
  if (mkdir(path.c_str(), S_IRWXU) != 0) return Failed("", errno);
  absl::Cleanup remove = [&path] {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  };
  const int upload = open(path.c_str(), kFolderFlags);
  if (upload < 0) return Failed("", errno);
  const absl::Cleanup close_it = [upload] { close(upload); };
  for (const UploadedFile& file : files) ABSL_RETURN_IF_ERROR(WriteFile(upload, file));
  std::move(remove).Cancel();
  bytes_[path] = bytes;
  return path;
}

void UploadFolder::Remove(const std::string& path) {
  if (bytes_.erase(path) == 0) return;
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

}  // namespace tilewire::service
