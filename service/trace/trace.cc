// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "engine/base/utf8.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

constexpr char kRun[] = "run";

std::mt19937_64 SeededBySystem() {
  std::random_device system;
  std::seed_seq seeds = {system(), system(), system(), system()};
  return std::mt19937_64(seeds);
}

}  // namespace

TraceMaker::TraceMaker(NameOf name_of) : name_of_(std::move(name_of)), random_(SeededBySystem()) {}

// Never all zeros, which stand for none.
SpanId TraceMaker::NewSpanId() {
  SpanId id = {};
  while (id == SpanId()) {
    const uint64_t word = random_();
    static_assert(sizeof(word) == sizeof(id));
    std::memcpy(id.data(), &word, sizeof(word));
  }
  return id;
}

Trace TraceMaker::Make(const TracedRequest& request) {
  const FlightRecord& record = request.record;
  Trace trace = {.number = ++made_,
                 .id = request.trace_id,
                 .parent_id = request.parent_id,
                 .request_id = Utf8Text(TextOf(request.id)),
                 .record = record};
  if (record.model != 0) {
    Name name = name_of_(record.model);
    trace.model = Utf8Text(name.model);
    trace.version = name.version;
  }
  trace.spans.push_back(
      {"request", NewSpanId(), request.parent_id, record.arrival_ns, record.EndNs()});
  AddStages(record, &trace);
  const auto run = std::find_if(trace.spans.begin(), trace.spans.end(),
                                [](const TraceSpan& span) { return span.name == kRun; });
  if (run != trace.spans.end()) AddSteps(request.longest_steps, TraceSpan(*run), &trace);
  return trace;
}

void TraceMaker::AddStages(const FlightRecord& record, Trace* trace) {
  const std::pair<const char*, int64_t> stages[] = {
      {"decode", record.decode_ns}, {"queue", record.queue_ns},   {"plan", record.plan_ns},
      {kRun, record.run_ns},        {"encode", record.encode_ns}, {"write", record.write_ns}};
  int64_t at = record.arrival_ns;
  for (const auto& [name, ns] : stages) {
    if (ns > 0) trace->spans.push_back({name, NewSpanId(), trace->request().id, at, at + ns});
    at += ns;
  }
}

// In the order in which they ran. A step lies within the run, whose ends others have measured.
void TraceMaker::AddSteps(const LongestSteps& steps, const TraceSpan& run, Trace* trace) {
  const size_t first = trace->spans.size();
  for (const LongestSteps::Step& step : steps.steps()) {
    const int64_t start =
        std::clamp(absl::ToUnixNanos(SteadyTime(step.start)), run.start_ns, run.end_ns);
    const int64_t end = std::min(start + step.time.count(), run.end_ns);
    trace->spans.push_back({Utf8Text(step.name()), NewSpanId(), run.id, start, end});
  }
  std::sort(trace->spans.begin() + first, trace->spans.end(),
            [](const TraceSpan& a, const TraceSpan& b) { return a.start_ns < b.start_ns; });
}

}  // namespace tilewire::service
