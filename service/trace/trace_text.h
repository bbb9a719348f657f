// SPDX-License-Identifier: Apache-2.0
//
// Traces as the elements of an array of JSON, in one of two forms. Nothing that a client has sent
// gets out of its string. Thread-compatible.
//
//   kChrome  for chrome://tracing and Perfetto: an event "X" (complete) per span, with microseconds
//            from `begin_ns`; requests that overlap lie in different rows (`tid`). Events "M"
//            (metadata) name the process and the rows
//   kTriton  as Triton writes it: an element that names the request, and one with its timestamps in
//            nanoseconds, under the same number `id`
#ifndef SERVICE_TRACE_TRACE_TEXT_H_
#define SERVICE_TRACE_TRACE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "service/trace/trace.h"

namespace tilewire::service {

enum class TraceForm { kChrome, kTriton };

class TraceText {
 public:
  TraceText(TraceForm form, int64_t begin_ns) : form_(form), begin_ns_(begin_ns) {}

  // Elements, a line each, with ",\n" between them.
  std::string Of(const Trace& trace);
  // Elements, each after ",\n", that name the rows so far that no call since BeginFile() has named;
  // empty if there are none.
  std::string TakeNames();
  // A new file names nothing yet.
  void BeginFile() { named_rows_ = 0; }

 private:
  std::string AsChrome(const Trace& trace);
  size_t RowOf(const TraceSpan& request);

  const TraceForm form_;
  const int64_t begin_ns_;
  std::vector<int64_t> row_ends_;  // when the last request of each row ended
  size_t named_rows_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_TEXT_H_
