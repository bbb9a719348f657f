// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

constexpr char kOpening[] = "[", kClosing[] = "\n]\n";
constexpr int64_t kOpeningBytes = sizeof(kOpening) - 1;

// Names of models and ids of requests are for the owner and the group.
constexpr mode_t kTraceFileMode = 0640;

}  // namespace

TraceFile::TraceFile(const std::string& path, TraceForm form, int64_t most_bytes)
    : TraceSink(TraceLoss::kFile),
      path_(path),
      most_bytes_(most_bytes),
      text_(form, absl::ToUnixNanos(SteadyNow())) {}

TraceFile::~TraceFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Open(const std::string& path, TraceForm form,
                                                           int64_t most_bytes) {
  auto file = std::unique_ptr<TraceFile>(new TraceFile(path, form, most_bytes));
  struct stat found = {};
  const bool is_there = stat(path.c_str(), &found) == 0;
  if (is_there && !S_ISREG(found.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a file"));
  }
  const absl::Status begun = is_there && found.st_size > 0 ? file->Rotate() : file->Begin();
  if (!begun.ok()) return begun;
  return file;
}

absl::Status TraceFile::Begin() {
  if (fd_ >= 0) close(fd_);
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kTraceFileMode);
  if (fd_ < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path_));
  size_ = kOpeningBytes;
  return WriteAt(0, absl::StrCat(kOpening, kClosing));
}

absl::Status TraceFile::Rotate() {
  const std::string before = absl::StrCat(path_, ".1");
  if (std::rename(path_.c_str(), before.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", path_, " to ", before));
  }
  return Begin();
}

absl::Status TraceFile::WriteAt(int64_t at, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote =
        pwrite(fd_, text.data() + done, text.size() - done, at + static_cast<int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", path_));
    done += wrote;
  }
  return absl::OkStatus();
}

// Whatever one trace takes, an empty file has room for it.
bool TraceFile::HasRoom(int64_t bytes) const {
  if (fd_ < 0) return false;
  const int64_t now = size_ + static_cast<int64_t>(lines_.size());
  return now == kOpeningBytes || now + bytes <= most_bytes_;
}

// Where there is no room for more, the file stays whole: its end is written over its old end.
void TraceFile::Flush() {
  if (waiting_ == 0) return;
  const absl::Status written = WriteAt(size_, absl::StrCat(lines_, kClosing));
  if (written.ok()) {
    size_ += static_cast<int64_t>(lines_.size());
  } else {
    const bool is_cut = ftruncate(fd_, size_) == 0;
    if (is_cut) WriteAt(size_, kClosing).IgnoreError();
    Drop(waiting_, std::string(written.message()));
  }
  lines_.clear();
  waiting_ = 0;
}

void TraceFile::Add(const Trace& trace) {
  const std::string elements = text_.Of(trace);
  const auto bytes = static_cast<int64_t>(elements.size() + sizeof(kClosing) + 1);
  if (!HasRoom(bytes)) {
    Flush();
    const absl::Status begun = Rotate();
    if (!begun.ok()) return Drop(1, std::string(begun.message()));
  }
  const bool is_first = size_ == kOpeningBytes && lines_.empty();
  absl::StrAppend(&lines_, is_first ? "\n" : ",\n", elements);
  ++waiting_;
}

void TraceFile::Write(absl::Span<const Trace> traces) {
  for (const Trace& trace : traces) Add(trace);
  Flush();
}

}  // namespace tilewire::service
