// SPDX-License-Identifier: Apache-2.0
//
// A request as spans: the whole of it, and the stages that it reached, one after the other: decode,
// queue, plan, run, encode, write. Thread-compatible.
#ifndef SERVICE_TRACE_TRACE_H_
#define SERVICE_TRACE_TRACE_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "service/observe/flight_record.h"
#include "service/observe/trace_context.h"
#include "service/trace/trace_queue.h"

namespace tilewire::service {

// Times in nanoseconds since 1970.
struct TraceSpan {
  const char* name = "";
  SpanId id = {};
  int64_t start_ns = 0, end_ns = 0;
};

struct Trace {
  uint64_t number = 0;    // from 1 up, in this process
  TraceId id = {};        // the client's; else one that is made
  SpanId parent_id = {};  // the span of the client that the request is a part of; zeros: of none
  std::string model;      // empty: it named none that is served. UTF-8, as all text here is
  int64_t version = 0;
  std::string request_id;  // the beginning of it; empty: it has none
  FlightRecord record;
  std::vector<TraceSpan> spans;  // the first is the request, the others are its parts

  const TraceSpan& request() const { return spans.front(); }
};

class TraceMaker {
 public:
  struct Name {
    std::string model;
    int64_t version = 0;
  };
  // The version with this number (FlightRecord::model).
  using NameOf = std::function<Name(uint32_t number)>;

  explicit TraceMaker(NameOf name_of);

  Trace Make(const TracedRequest& request);

 private:
  template <typename Id>
  Id NewId();

  const NameOf name_of_;
  std::mt19937_64 random_;
  uint64_t made_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_H_
