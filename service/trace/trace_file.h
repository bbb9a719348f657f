// SPDX-License-Identifier: Apache-2.0
//
// Traces in a file, an array of JSON that is whole after every write. Where it would become larger
// than a bound it is renamed to PATH.1, which replaces the one before, and a new one is begun: two
// of them are all there is. A file without traces is never renamed. Thread-compatible, but for
// Begin().
#ifndef SERVICE_TRACE_TRACE_FILE_H_
#define SERVICE_TRACE_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "service/trace/held_file.h"
#include "service/trace/trace_sink.h"
#include "service/trace/trace_text.h"

namespace tilewire::service {

class TraceFile final : public TraceSink {
 public:
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  // Touches nothing until it begins.
  TraceFile(std::string path, TraceForm form, int64_t most_bytes = kMostBytes);

  // Takes the file, for as long as this lives; one that has traces becomes PATH.1. A full disk is
  // told in the log and ends nothing: traces are lost until there is room. Once: later calls return
  // what the first did. Any thread may; the first Write() does.
  //   the errors of ResolveTracePath(), CheckMayBeReplaced() of PATH.1 and HeldFile::Take()
  absl::Status Begin();

  void Write(absl::Span<const Trace> traces) override;

 private:
  absl::Status BeginFirst();
  absl::Status Open();
  absl::Status MoveAway();
  absl::Status WriteEmpty();
  absl::Status Renew();
  absl::Status WriteAt(int64_t at, const std::string& text);
  bool HasRoom(int64_t bytes) const;
  void Flush();
  void Add(const Trace& trace);

  const int64_t most_bytes_;
  std::string path_, before_;  // the file, and PATH.1
  TraceText text_;
  std::once_flag begun_;
  absl::Status begin_;              // what came of it
  std::unique_ptr<HeldFile> held_;  // null: none could be had
  int64_t size_ = 0;     // up to the end of the last element; 0: kEmptyTrace is to be written
  std::string lines_;    // elements that are to be written
  int64_t waiting_ = 0;  // traces in these
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_FILE_H_
