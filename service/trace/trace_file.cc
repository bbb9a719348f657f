// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

constexpr int64_t kOpeningBytes = 1;  // "["
constexpr const char* kClosing = kEmptyTrace + kOpeningBytes;
constexpr int64_t kClosingBytes = sizeof(kEmptyTrace) - 1 - kOpeningBytes;

// Room may come again: no space or descriptors are left, or a quota or a limit of sizes is reached.
bool MayPass(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsOutOfRange(status);
}

}  // namespace

TraceFile::TraceFile(std::string path, TraceForm form, int64_t most_bytes)
    : TraceSink(TraceLoss::kFile),
      most_bytes_(most_bytes),
      path_(std::move(path)),
      text_(form, absl::ToUnixNanos(SteadyNow())) {}

absl::Status TraceFile::Begin() {
  std::call_once(begun_, [this] { begin_ = BeginFirst(); });
  return begin_;
}

absl::Status TraceFile::BeginFirst() {
  ABSL_ASSIGN_OR_RETURN(path_, ResolveTracePath(path_));
  before_ = absl::StrCat(path_, ".1");
  ABSL_RETURN_IF_ERROR(CheckMayBeReplaced(before_));
  const absl::Status opened = Open();
  if (!MayPass(opened)) return opened;
  Drop(0, std::string(opened.message()));
  return absl::OkStatus();
}

// The file of before is let go when the new one is locked, so that no other server gets between.
absl::Status TraceFile::Open() {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<HeldFile> found, HeldFile::Take(path_));
  if (found->had_traces()) {
    ABSL_RETURN_IF_ERROR(MoveAway());
    ABSL_ASSIGN_OR_RETURN(found, HeldFile::Take(path_));
    if (found->had_traces())
      return absl::AbortedError(absl::StrCat(path_, " was written by another server meanwhile"));
  }
  held_ = std::move(found);
  size_ = 0;
  return WriteEmpty();
}

absl::Status TraceFile::MoveAway() {
  ABSL_RETURN_IF_ERROR(CheckMayBeReplaced(before_));
  if (std::rename(path_.c_str(), before_.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", path_, " to ", before_));
}

absl::Status TraceFile::WriteEmpty() {
  ABSL_RETURN_IF_ERROR(WriteAt(0, kEmptyTrace));
  size_ = kOpeningBytes;
  text_.BeginFile();
  return absl::OkStatus();
}

// A new file in the place of a full one, or of one that could not be begun.
absl::Status TraceFile::Renew() {
  if (held_ == nullptr) return Open();
  if (size_ == 0) return WriteEmpty();
  if (held_->IsAt(path_)) {
    ABSL_RETURN_IF_ERROR(MoveAway());
  }
  return Open();
}

absl::Status TraceFile::WriteAt(int64_t at, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = pwrite(held_->fd(), text.data() + done, text.size() - done,
                                 at + static_cast<int64_t>(done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write to ", path_));
    done += wrote;
  }
  return absl::OkStatus();
}

// Whatever one trace takes, an empty file has room for it.
bool TraceFile::HasRoom(int64_t bytes) const {
  if (held_ == nullptr || size_ == 0) return false;
  const int64_t now = size_ + static_cast<int64_t>(lines_.size());
  return now == kOpeningBytes || now + bytes <= most_bytes_;
}

// If the disk is full, restores the closing bracket, so that the file stays valid.
void TraceFile::Flush() {
  if (waiting_ == 0) return;
  const absl::Status written = WriteAt(size_, absl::StrCat(lines_, kClosing));
  if (written.ok()) {
    size_ += static_cast<int64_t>(lines_.size());
  } else {
    const bool is_cut = ftruncate(held_->fd(), size_) == 0;
    if (is_cut) WriteAt(size_, kClosing).IgnoreError();
    Drop(waiting_, std::string(written.message()));
    text_.BeginFile();  // names may be among what is lost
  }
  lines_.clear();
  waiting_ = 0;
}

void TraceFile::Add(const Trace& trace) {
  const std::string elements = text_.Of(trace);
  const auto bytes = static_cast<int64_t>(elements.size()) + kClosingBytes + 2;
  if (!HasRoom(bytes)) {
    Flush();
    const absl::Status begun = Renew();
    if (!begun.ok()) return Drop(1, std::string(begun.message()));
  }
  const bool is_first = size_ == kOpeningBytes && lines_.empty();
  absl::StrAppend(&lines_, is_first ? "\n" : ",\n", elements, text_.TakeNames());
  ++waiting_;
}

void TraceFile::Write(absl::Span<const Trace> traces) {
  if (const absl::Status begun = Begin(); !begun.ok())
    return Drop(static_cast<int64_t>(traces.size()), std::string(begun.message()));
  for (const Trace& trace : traces) Add(trace);
  Flush();
}

}  // namespace tilewire::service
