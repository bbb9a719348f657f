// SPDX-License-Identifier: Apache-2.0
#include "service/observe/request_log.h"

#include <utility>

#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// A client that gave up says nothing about the server.
bool IsWorthALine(const absl::Status& status) { return !status.ok() && !absl::IsCancelled(status); }

}  // namespace

bool RequestLog::MayWrite(int64_t* left_out) {
  const absl::Time now = SteadyNow();
  threading::MutexLock lock(&mutex_);
  if (now - second_ >= absl::Seconds(1)) {
    second_ = now;
    lines_ = 0;
  }
  if (++lines_ > kLinesPerSecond) {
    ++left_out_;
    return false;
  }
  *left_out = std::exchange(left_out_, 0);
  return true;
}

void RequestLog::Ended(const EndedRequest& request) {
  const absl::Status& status = *request.status;
  const size_t code = static_cast<size_t>(status.code());
  by_code_.Add(code < kCodes ? code : static_cast<size_t>(absl::StatusCode::kUnknown));
  const bool slow = request.waited + request.ran > slow_;
  if (slow) by_code_.Add(kCodes);
  int64_t left_out = 0;
  if ((!slow && !IsWorthALine(status)) || !MayWrite(&left_out)) return;
  if (left_out > 0) spdlog::warn("{} lines about requests were left out", left_out);
  spdlog::warn("request {} {} from {}: {} after {:.1f} ms waiting and {:.1f} ms running{}{}",
               std::string(request.method),
               request.model.empty() ? "-" : std::string(request.model), request.peer(),
               absl::StatusCodeToString(status.code()), absl::ToDoubleMilliseconds(request.waited),
               absl::ToDoubleMilliseconds(request.ran), status.ok() ? "" : ": ",
               std::string(status.message()));
}

}  // namespace tilewire::service
