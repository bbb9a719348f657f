// SPDX-License-Identifier: Apache-2.0
//
// A slow request's story in words.
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "service/observe/slow_requests.h"

namespace tilewire::service {
namespace {

using VersionName = absl::FunctionRef<std::string(uint32_t model)>;

// A stage that took less than this share of the whole is not worth a word.
constexpr double kWorthAWord = 0.1;
// A run is longer than usual from here on.
constexpr double kUnusual = 1.5;

// "371 ms", "0.21 ms"
std::string TimeText(int64_t ns) {
  const double ms = static_cast<double>(ns) * 1e-6;
  return ms >= 100 ? absl::StrFormat("%.0f ms", ms) : absl::StrFormat("%.3g ms", ms);
}

std::string CountOf(uint32_t requests) {
  return absl::StrCat(requests, requests == 1 ? " request" : " requests");
}

bool IsWorthAWord(int64_t ns, const FlightRecord& record) {
  return ns > 0 && static_cast<double>(ns) >= kWorthAWord * static_cast<double>(record.TotalNs());
}

std::string WaitText(const SlowRequest& request, VersionName name_of) {
  std::string text = absl::StrCat(TimeText(request.record.queue_ns), " waiting");
  if ((request.record.flags & FlightRecord::kWaitedForPlan) != 0)
    absl::StrAppend(&text, " for the plan of its shape, which another request made");
  std::vector<std::string> ahead;
  for (uint32_t i = 0; i < request.ahead_count; ++i) {
    const SlowRequest::Ahead& one = request.ahead[i];
    ahead.push_back(absl::StrCat(CountOf(one.requests), " of ", name_of(one.model), " (",
                                 TimeText(one.run_ns), ")"));
  }
  if (!ahead.empty()) absl::StrAppend(&text, " while these ran: ", absl::StrJoin(ahead, ", "));
  return text;
}

std::string RunText(const SlowRequest& request) {
  std::string text = absl::StrCat(TimeText(request.RunNs()), " running");
  const double times = request.usual_ns > 0 ? static_cast<double>(request.RunNs()) /
                                                  static_cast<double>(request.usual_ns)
                                            : 0;
  if (times >= kUnusual)
    absl::StrAppend(&text, absl::StrFormat(", %.1f times the usual ", times),
                    TimeText(request.usual_ns));
  if (request.usual_ns == 0) absl::StrAppend(&text, ", the first of its shape that is known");
  if ((request.record.flags & FlightRecord::kMadePlan) != 0)
    absl::StrAppend(&text, ", ", TimeText(request.record.plan_ns), " of it for making the plan");
  if (request.beside > 0) absl::StrAppend(&text, ", beside ", CountOf(request.beside));
  if ((request.record.flags & FlightRecord::kRanSerially) != 0)
    absl::StrAppend(&text, ", on one core");
  return text;
}

}  // namespace

std::string StoryText(const SlowRequest& request, VersionName name_of) {
  const FlightRecord& record = request.record;
  std::vector<std::string> parts;
  if (IsWorthAWord(record.decode_ns, record))
    parts.push_back(absl::StrCat(TimeText(record.decode_ns), " reading the request"));
  if (IsWorthAWord(record.queue_ns, record)) parts.push_back(WaitText(request, name_of));
  if (IsWorthAWord(request.RunNs(), record)) parts.push_back(RunText(request));
  if (IsWorthAWord(record.write_ns, record)) {
    parts.push_back(
        absl::StrCat(TimeText(record.write_ns), " until the client had taken the answer"));
  }
  if (request.throttled_ns > 0) {
    parts.push_back(absl::StrCat("the control group held the process back for up to ",
                                 TimeText(request.throttled_ns), " of core time"));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace tilewire::service
