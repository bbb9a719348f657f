// SPDX-License-Identifier: Apache-2.0
//
// The one file that a server writes traces to: where it is, whether it may be taken, and the lock
// that keeps other servers out while it is held. Nothing that is not a trace of this server's is
// ever written over or renamed. Functions thread-safe, objects thread-compatible.
#ifndef SERVICE_TRACE_HELD_FILE_H_
#define SERVICE_TRACE_HELD_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tilewire::service {

// A file without traces, in either form.
inline constexpr char kEmptyTrace[] = "[\n]\n";

// Its absolute path without links, so that what is renamed is the file and not a link to it.
//   kInvalidArgument  it is below /dev or /proc
//   other codes       as the system says
absl::StatusOr<std::string> ResolveTracePath(const std::string& given);

// Whether a trace may be renamed to this path.
//   kInvalidArgument  something else than a trace is there
//   other codes       as the system says
absl::Status CheckMayBeReplaced(const std::string& path);

class HeldFile {
 public:
  // Opens the file, or makes an empty one, and locks it (flock); its bytes stay as they are.
  //   kInvalidArgument  something else than a trace is there
  //   kUnavailable      another server holds it
  //   other codes       as the system says
  static absl::StatusOr<std::unique_ptr<HeldFile>> Take(const std::string& path);
  ~HeldFile();
  HeldFile(const HeldFile&) = delete;

  int fd() const { return fd_; }
  // Whether there were any when it was taken. Where not, its bytes are the first of kEmptyTrace.
  bool had_traces() const { return had_traces_; }
  // Whether this file is still the one at the path, neither renamed nor removed.
  bool IsAt(const std::string& path) const;

 private:
  explicit HeldFile(int fd) : fd_(fd) {}

  const int fd_;
  bool had_traces_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_HELD_FILE_H_
