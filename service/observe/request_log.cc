// SPDX-License-Identifier: Apache-2.0
#include "service/observe/request_log.h"

#include <utility>

#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// A client that gave up says nothing about the server.
bool IsWorthALine(const absl::Status& status) { return !status.ok() && !absl::IsCancelled(status); }

// For people.
std::string NameOf(absl::string_view model) { return model.empty() ? "-" : std::string(model); }

}  // namespace

bool RequestLog::MayWrite(Kind kind) {
  const absl::Time now = SteadyNow();
  int64_t left_out = 0;
  {
    threading::MutexLock lock(&mutex_);
    Lines& lines = lines_[kind];
    if (now - lines.second >= absl::Seconds(1)) {
      lines.second = now;
      lines.written = 0;
    }
    if (++lines.written > kLinesPerSecond) {
      ++lines.left_out;
      return false;
    }
    left_out = std::exchange(lines.left_out, 0);
  }
  if (left_out > 0) {
    spdlog::warn("{} lines about {} were left out", left_out,
                 kind == kEnded ? "requests" : "answers that were not read");
  }
  return true;
}

void RequestLog::Ended(const EndedRequest& request) {
  const absl::Status& status = *request.status;
  const size_t code = static_cast<size_t>(status.code());
  by_code_.Add(code < kCodes ? code : static_cast<size_t>(absl::StatusCode::kUnknown));
  const bool slow = request.waited + request.ran > slow_;
  if (slow) by_code_.Add(kSlow);
  if ((!slow && !IsWorthALine(status)) || !MayWrite(kEnded)) return;
  spdlog::warn("request {} {} from {}: {} after {:.1f} ms waiting and {:.1f} ms running{}{}",
               std::string(request.method), NameOf(request.model), request.peer(),
               absl::StatusCodeToString(status.code()), absl::ToDoubleMilliseconds(request.waited),
               absl::ToDoubleMilliseconds(request.ran), status.ok() ? "" : ": ",
               std::string(status.message()));
}

void RequestLog::EndedUnread(const EndedRequest& request) {
  by_code_.Add(kUnread);
  if (!MayWrite(kEndedUnread)) return;
  spdlog::warn("request {} {} from {}: {}: {}", std::string(request.method), NameOf(request.model),
               request.peer(), absl::StatusCodeToString(request.status->code()),
               std::string(request.status->message()));
}

}  // namespace tilewire::service
