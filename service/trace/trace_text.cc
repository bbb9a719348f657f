// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_text.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace tilewire::service {
namespace {

using TraceJson = nlohmann::ordered_json;

template <typename Id>
std::string HexOf(const Id& id) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), id.size()});
}

// ASCII alone, whatever the strings hold.
std::string LineOf(const TraceJson& object) {
  return object.dump(-1, ' ', true, TraceJson::error_handler_t::replace);
}

std::string CodeName(const FlightRecord& record) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(record.code));
}

TraceJson ArgumentsOf(const Trace& trace) {
  TraceJson arguments = {{"model", trace.model},
                         {"version", trace.version},
                         {"id", trace.request_id},
                         {"code", CodeName(trace.record)},
                         {"rows", trace.record.rows},
                         {"trace_id", HexOf(trace.id)},
                         {"span_id", HexOf(trace.request().id)}};
  if (trace.parent_id != SpanId()) arguments["parent_id"] = HexOf(trace.parent_id);
  arguments["at"] = absl::FormatTime(
      "%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixNanos(trace.record.arrival_ns), absl::UTCTimeZone());
  return arguments;
}

// The points of time that a request reached, under Triton's names and in their order. Its tools
// leave out requests without the first two, which it has of each that came by gRPC.
TraceJson TimestampsOf(const FlightRecord& record) {
  const int64_t queued = record.arrival_ns + record.decode_ns, ran = record.StartNs();
  const int64_t planned = ran + record.plan_ns, computed = planned + record.run_ns;
  const int64_t encoded = ran + record.RunningNs();
  const bool has_run = record.RunningNs() > 0;
  TraceJson stamps = TraceJson::array();
  const auto add = [&stamps](bool reached, const char* name, int64_t ns) {
    if (reached) stamps.push_back({{"name", name}, {"ns", ns}});
  };
  add(true, "GRPC_WAITREAD_START", record.arrival_ns);
  add(true, "GRPC_WAITREAD_END", record.arrival_ns);
  add(true, "REQUEST_START", record.arrival_ns);
  add(record.decode_ns > 0, "QUEUE_START", queued);
  add(has_run, "COMPUTE_START", ran);
  add(has_run, "COMPUTE_INPUT_END", planned);
  add(has_run, "COMPUTE_OUTPUT_START", computed);
  add(has_run, "COMPUTE_END", encoded);
  add(true, "REQUEST_END", encoded);
  add(true, "GRPC_SEND_START", encoded);
  add(true, "GRPC_SEND_END", record.EndNs());
  return stamps;
}

std::string AsTriton(const Trace& trace) {
  const TraceJson request = {{"id", trace.number},
                             {"model_name", trace.model},
                             {"model_version", trace.version},
                             {"request_id", trace.request_id},
                             {"trace_id", HexOf(trace.id)}};
  const TraceJson times = {{"id", trace.number}, {"timestamps", TimestampsOf(trace.record)}};
  return absl::StrCat(LineOf(request), ",\n", LineOf(times));
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

constexpr int kChromeProcess = 1;

// An event that names a process or a row, rows from 1 up.
std::string ChromeName(const char* what, size_t row, const std::string& name) {
  return LineOf({{"name", what},
                 {"ph", "M"},
                 {"pid", kChromeProcess},
                 {"tid", row},
                 {"args", {{"name", name}}}});
}

}  // namespace

// The first row whose last request had ended.
size_t TraceText::RowOf(const TraceSpan& request) {
  const auto free = std::find_if(row_ends_.begin(), row_ends_.end(),
                                 [&request](int64_t end) { return end <= request.start_ns; });
  const size_t row = free - row_ends_.begin();
  if (free == row_ends_.end()) row_ends_.push_back(0);
  row_ends_[row] = request.end_ns;
  return row;
}

std::string TraceText::AsChrome(const Trace& trace) {
  const size_t row = RowOf(trace.request());
  std::string lines;
  for (const TraceSpan& span : trace.spans) {
    TraceJson event = {{"name", span.name},
                       {"cat", "inference"},
                       {"ph", "X"},
                       {"pid", kChromeProcess},
                       {"tid", row + 1},
                       {"ts", Microseconds(span.start_ns - begin_ns_)},
                       {"dur", Microseconds(span.end_ns - span.start_ns)}};
    if (lines.empty()) event["args"] = ArgumentsOf(trace);
    absl::StrAppend(&lines, lines.empty() ? "" : ",\n", LineOf(event));
  }
  return lines;
}

std::string TraceText::TakeNames() {
  std::string lines;
  if (named_rows_ == 0 && !row_ends_.empty())
    absl::StrAppend(&lines, ",\n", ChromeName("process_name", 0, "tilewire-server"));
  for (; named_rows_ < row_ends_.size(); ++named_rows_) {
    const size_t row = named_rows_ + 1;
    const std::string name = absl::StrCat("requests, row ", row);
    absl::StrAppend(&lines, ",\n", ChromeName("thread_name", row, name));
  }
  return lines;
}

std::string TraceText::Of(const Trace& trace) {
  return form_ == TraceForm::kChrome ? AsChrome(trace) : AsTriton(trace);
}

}  // namespace tilewire::service
