// SPDX-License-Identifier: Apache-2.0
//
// A request as spans: the whole of it, the stages that it reached, one after the other: decode,
// queue, plan, run, encode, write; and of the run its longest steps. Thread-compatible.
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
  std::string name;  // of a stage; of a step: the node's, the beginning of it
  SpanId id = {};
  SpanId parent_id = {};
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
  // The first is the request, which its stages follow in their order; the last are the longest
  // steps of the run, which is their parent.
  std::vector<TraceSpan> spans;

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
  SpanId NewSpanId();
  void AddStages(const FlightRecord& record, Trace* trace);
  void AddSteps(const LongestSteps& steps, const TraceSpan& run, Trace* trace);

  const NameOf name_of_;
  std::mt19937_64 random_;
  uint64_t made_ = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACE_TRACE_H_
