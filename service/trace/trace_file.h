// SPDX-License-Identifier: Apache-2.0
//
// Traces in a file, an array of JSON that is whole after every write. Where it would become larger
// than a bound it is renamed to PATH.1, which replaces the one before, and a new one is begun: two
// of them are all there is. Thread-compatible.
#ifndef SERVICE_TRACE_TRACE_FILE_H_
#define SERVICE_TRACE_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "service/trace/trace_sink.h"
#include "service/trace/trace_text.h"

namespace tilewire::service {

class TraceFile final : public TraceSink {
 public:
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  // Begins the file; one that is there and not empty becomes PATH.1.
  //   kInvalidArgument  something else than a file is there
  //   other codes       as the system says
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path, TraceForm form,
                                                         int64_t most_bytes = kMostBytes);
  ~TraceFile() override;

  void Write(absl::Span<const Trace> traces) override;

 private:
  TraceFile(const std::string& path, TraceForm form, int64_t most_bytes);
  absl::Status Begin();
  absl::Status Rotate();
  absl::Status WriteAt(int64_t at, const std::string& text);
  bool HasRoom(int64_t bytes) const;
  void Flush();
  void Add(const Trace& trace);

  const std::string path_;
  const int64_t most_bytes_;
  TraceText text_;
  int fd_ = -1;          // -1: a new file could not be begun
  int64_t size_ = 0;     // up to the end of the last element
  std::string lines_;    // elements that are to be written
  int64_t waiting_ = 0;  // traces in these
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_FILE_H_
