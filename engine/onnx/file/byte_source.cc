// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

// An open file descriptor; closes it. Move-only.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Many kernels take a core from a thread only between its calls. A call that fills fresh memory
// takes 0.15 ms for as many bytes as this, and 11 ms for the weights of a large layer (9 MB, on Zen
// 3): a request that comes to the core of a load would wait for the end of it.
constexpr int64_t kPieceOfARead = 128 << 10;

bool Equal(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class FileSource final : public ByteSource, public std::enable_shared_from_this<FileSource> {
 public:
  FileSource(Descriptor file, const struct stat& opened)
      : file_(std::move(file)), opened_(opened) {}

  int64_t size() const override { return opened_.st_size; }

  absl::Status Read(int64_t offset, int64_t count, void* dst) const override {
    if (offset < 0 || count < 0 || offset > size() || count > size() - offset) {
      return InvalidArgument("data beyond the end of the file");
    }
    char* out = static_cast<char*>(dst);
    while (count > 0) {
      const ssize_t got = pread(file_.get(), out, std::min(count, kPieceOfARead), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return InvalidArgument("cannot read the file: ", strerror(errno));
      if (got == 0) return InvalidArgument("the file became shorter while it was read");
      out += got;
      offset += got;
      count -= got;
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnchanged() const override {
    struct stat now;
    if (fstat(file_.get(), &now) != 0 || now.st_size != opened_.st_size ||
        !Equal(now.st_mtim, opened_.st_mtim) || !Equal(now.st_ctim, opened_.st_ctim)) {
      return InvalidArgument("the file changed while it was read");
    }
    return absl::OkStatus();
  }

  std::shared_ptr<const ByteSource> Keep() const override { return shared_from_this(); }

 private:
  Descriptor file_;
  struct stat opened_;
};

class KeptSource final : public ByteSource, public std::enable_shared_from_this<KeptSource> {
 public:
  explicit KeptSource(std::string bytes) : bytes_(std::move(bytes)), memory_(bytes_) {}

  int64_t size() const override { return memory_.size(); }
  absl::Status Read(int64_t offset, int64_t count, void* dst) const override {
    return memory_.Read(offset, count, dst);
  }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  std::shared_ptr<const ByteSource> Keep() const override { return shared_from_this(); }

 private:
  const std::string bytes_;
  const MemorySource memory_;
};

absl::StatusOr<struct stat> RegularFile(const Descriptor& file) {
  struct stat status;
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return InvalidArgument("not a regular file");
  }
  return status;
}

// O_NONBLOCK: opening a FIFO must not wait for its writer.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

}  // namespace

absl::Status MemorySource::Read(int64_t offset, int64_t count, void* dst) const {
  if (offset < 0 || count < 0 || offset > size() || count > size() - offset) {
    return InvalidArgument("data beyond the end of the message");
  }
  if (count > 0) memcpy(dst, bytes_.data() + offset, count);
  return absl::OkStatus();
}

std::shared_ptr<const ByteSource> KeptBytes(std::string bytes) {
  return std::make_shared<const KeptSource>(std::move(bytes));
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(const std::string& path) {
  Descriptor file(open(path.c_str(), kOpenFlags));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot open the model file");
  ABSL_ASSIGN_OR_RETURN(const struct stat status, RegularFile(file));
  return std::make_shared<const FileSource>(std::move(file), status);
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFileBeside(const std::string& beside,
                                                                 absl::string_view location) {
  const std::vector<std::string> parts = absl::StrSplit(location, '/');
  for (const std::string& part : parts) {
    if (part.empty() || part == ".." || absl::StrContains(part, '\0')) {
      return InvalidArgument("external data at '", location, "': not a path below the model");
    }
  }
  const size_t slash = beside.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : beside.substr(0, slash + 1);
  Descriptor at(open(folder.c_str(), kOpenFlags | O_DIRECTORY));
  int error = errno;
  for (size_t i = 0; i < parts.size() && at.get() >= 0; ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : 0;
    Descriptor next(openat(at.get(), parts[i].c_str(), kOpenFlags | O_NOFOLLOW | kind));
    error = errno;
    at = std::move(next);
  }
  // The kernel reports "not a directory" for a link in the place of a folder.
  if (at.get() < 0 && (error == ELOOP || error == ENOTDIR)) {
    return InvalidArgument("external data at '", location,
                           "' goes through a symbolic link or a file");
  }
  if (at.get() < 0) {
    return absl::NotFoundError(
        absl::StrCat("external data at '", location, "': ", strerror(error)));
  }
  absl::StatusOr<struct stat> status = RegularFile(at);
  if (!status.ok() || status->st_nlink != 1) {
    return InvalidArgument("external data at '", location, "' is not a regular file with one name");
  }
  return std::make_shared<const FileSource>(std::move(at), *status);
}

}  // namespace tilewire::reader
