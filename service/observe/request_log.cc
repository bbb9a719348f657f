// SPDX-License-Identifier: Apache-2.0
#include "service/observe/request_log.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "service/observe/log_fields.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// A client that gave up says nothing about the server.
bool IsWorthALine(const absl::Status& status) { return !status.ok() && !absl::IsCancelled(status); }

// As Triton's clients ask for by log_verbose_level=1; one load of a number.
bool IsVerbose() { return spdlog::default_logger_raw()->should_log(spdlog::level::debug); }

// For people.
std::string NameOf(absl::string_view model) { return model.empty() ? "-" : std::string(model); }

LogFields FieldsOf(const EndedRequest& request, const RequestOrigin& origin) {
  LogFields fields;
  fields.texts = {{"method", std::string(request.method)},
                  {"model", std::string(request.model)},
                  {"peer", origin.peer},
                  {"request_id", origin.id},
                  {"trace_id", origin.trace_id},
                  {"code", absl::StatusCodeToString(request.status->code())}};
  return fields;
}

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
  by_code_.Add(IndexOf(status.code()));
  const bool slow = request.waited + request.ran > slow_;
  if (slow) by_code_.Add(kSlow);
  const bool bad = slow || IsWorthALine(status);
  const bool all = access_ == AccessLog::kAll || IsVerbose();
  if (!all && (access_ == AccessLog::kOff || !bad || !MayWrite(kEnded))) return;
  const RequestOrigin origin = request.origin();
  const double waited_ms = absl::ToDoubleMilliseconds(request.waited);
  const double ran_ms = absl::ToDoubleMilliseconds(request.ran);
  const std::string text = absl::StrFormat(
      "request %s %s id %s from %s: %s after %.1f ms waiting and %.1f ms running%s%s",
      request.method, NameOf(request.model), origin.id, origin.peer,
      absl::StatusCodeToString(status.code()), waited_ms, ran_ms, status.ok() ? "" : ": ",
      status.message());
  LogFields fields = FieldsOf(request, origin);
  fields.numbers = {{"waited_ms", waited_ms}, {"ran_ms", ran_ms}};
  const auto good = access_ == AccessLog::kAll ? spdlog::level::info : spdlog::level::debug;
  LogLine(bad ? spdlog::level::warn : good, text, fields);
}

void RequestLog::EndedUnread(const EndedRequest& request) {
  by_code_.Add(kUnread);
  if (access_ == AccessLog::kOff || !MayWrite(kEndedUnread)) return;
  const RequestOrigin origin = request.origin();
  const std::string text = absl::StrFormat(
      "request %s %s id %s from %s: %s: %s", request.method, NameOf(request.model), origin.id,
      origin.peer, absl::StatusCodeToString(request.status->code()), request.status->message());
  LogLine(spdlog::level::warn, text, FieldsOf(request, origin));
}

}  // namespace tilewire::service
