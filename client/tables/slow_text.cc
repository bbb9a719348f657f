// SPDX-License-Identifier: Apache-2.0
#include "client/tables/slow_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/amount_text.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

constexpr int kTextColumns = 80, kIndent = 9;

// The least part of the last minute that is told: any machine shows less.
constexpr double kWorthALine = 0.1;

std::string InMilliseconds(int64_t ns) {
  const double ms = static_cast<double>(ns) * 1e-6;
  return ms >= 100 ? absl::StrFormat("%.0f", ms) : absl::StrFormat("%.2f", ms);
}

// Lines of at most kTextColumns, each with an indent.
std::string Wrapped(const std::string& text) {
  std::string lines, line;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && kIndent + TextWidth(line) + 1 + TextWidth(word) > kTextColumns) {
      absl::StrAppend(&lines, std::string(kIndent, ' '), line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return line.empty() ? lines : absl::StrCat(lines, std::string(kIndent, ' '), line, "\n");
}

std::string RequestText(const v1::SlowRequest& request) {
  const absl::Time at = absl::FromUnixNanos(request.at_ns());
  const int64_t run_ns = request.plan_ns() + request.run_ns() + request.encode_ns();
  std::string text = absl::StrFormat(
      "%s %9s %9s %9s %9s  %s", absl::FormatTime("%H:%M:%S", at, absl::UTCTimeZone()),
      InMilliseconds(request.total_ns()), InMilliseconds(request.queue_ns()),
      InMilliseconds(run_ns), request.usual_ns() == 0 ? "-" : InMilliseconds(request.usual_ns()),
      request.model().empty() ? "-" : request.model());
  if (!request.version().empty()) absl::StrAppend(&text, " ", request.version());
  if (!request.id().empty()) absl::StrAppend(&text, " id ", request.id());
  if (request.code() != "OK") absl::StrAppend(&text, " ", request.code());
  return absl::StrCat(ShownText(text), "\n", Wrapped(ShownText(request.words())));
}

// How long a core was held is not how long it computed: the system may have given it to others.
std::string CpuWaitText(const v1::SlowRequestsResponse& slow) {
  if (!slow.has_cpu_wait_share() || slow.cpu_wait_share() < kWorthALine) return "";
  return absl::StrFormat(
      "compute threads that could run waited %.0f %% of the last minute for a CPU:\n"
      "other processes take it, or --threads is more than there are cores\n",
      100 * slow.cpu_wait_share());
}

std::string RequestsText(const v1::SlowRequestsResponse& slow) {
  if (slow.requests().empty()) return "no requests are known of that time\n";
  std::string text = "     UTC        ms   waiting   running   usually  model, version, id\n";
  for (const v1::SlowRequest& request : slow.requests()) text += RequestText(request);
  return text;
}

}  // namespace

std::string SlowText(const v1::SlowRequestsResponse& slow) {
  std::string text = RequestsText(slow);
  if (slow.missed() > 0) {
    absl::StrAppend(&text, CountText(slow.missed(), "more request"),
                    " came too fast to be looked at\n");
  }
  return text + CpuWaitText(slow);
}

}  // namespace tilewire::client
