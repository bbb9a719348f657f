// SPDX-License-Identifier: Apache-2.0
//
// The status as a page.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "engine/base/utf8.h"
#include "service/observe/status.h"

namespace tilewire::service {
namespace {

constexpr char kTemplate[] =
#include "service/observe/statusz_page.inc"
    ;

// Text of any origin as the content of an element or the value of an attribute in quotes.
std::string Html(absl::string_view text) {
  std::string shown = Utf8Text(text);
  for (char& c : shown) {
    if (absl::ascii_iscntrl(c)) c = ' ';
  }
  return absl::StrReplaceAll(
      shown, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// "0.21", "12.3", "371"
std::string NumberText(double value) {
  if (value >= 99.95) return absl::StrFormat("%.0f", value);
  return value >= 9.995 ? absl::StrFormat("%.1f", value) : absl::StrFormat("%.2f", value);
}

// Empty for what was not measured.
std::string MsText(double ms) { return ms > 0 ? absl::StrCat(NumberText(ms), " ms") : ""; }
std::string PercentText(double share) { return absl::StrCat(NumberText(100 * share), " %"); }

std::string MegabytesText(int64_t bytes) {
  return absl::StrCat(NumberText(static_cast<double>(bytes) / (1 << 20)), " MB");
}

// "3 d 4 h", "2 h 5 min", "41 s"
std::string UptimeText(absl::Duration time) {
  const int64_t seconds = absl::ToInt64Seconds(time), minutes = seconds / 60, hours = minutes / 60;
  if (hours >= 24) return absl::StrCat(hours / 24, " d ", hours % 24, " h");
  if (hours > 0) return absl::StrCat(hours, " h ", minutes % 60, " min");
  return minutes > 0 ? absl::StrCat(minutes, " min ", seconds % 60, " s")
                     : absl::StrCat(seconds, " s");
}

std::string ClockText(absl::Time at) {
  return absl::FormatTime("%H:%M:%S", at, absl::UTCTimeZone());
}

// The state in words, with a sign that does not need its colour.
std::string StateHtml(const std::string& state) {
  const bool is_good = state == "READY";
  const bool is_busy = state == "LOADING" || state == "UNLOADING" || state == "DRAINING";
  return absl::StrCat("<span class=\"state ",
                      is_good   ? "good"
                      : is_busy ? "busy"
                                : "bad",
                      "\">",
                      is_good   ? "&#9679; "
                      : is_busy ? "&#9684; "
                                : "&#9650; ",
                      Html(state), "</span>");
}

// A table whose rows become cards where the page is narrow.
class Table {
 public:
  // A column's name; with '#' in front its cells are numbers, with '!' words that stay on a line,
  // with '<' long texts.
  Table(std::initializer_list<const char*> columns) : columns_(columns) {}

  // Cells are HTML.
  void Add(const std::vector<std::string>& cells) {
    absl::StrAppend(&rows_, "<tr>");
    for (size_t i = 0; i < cells.size(); ++i) {
      absl::StrAppend(&rows_, "<td", ClassOf(i), " data-name=\"", NameOf(i), "\">", cells[i],
                      "</td>");
    }
    absl::StrAppend(&rows_, "</tr>\n");
  }

  bool empty() const { return rows_.empty(); }

  std::string Html() const {
    std::string head;
    for (size_t i = 0; i < columns_.size(); ++i)
      absl::StrAppend(&head, "<th scope=\"col\"", ClassOf(i), ">", NameOf(i), "</th>");
    return absl::StrCat("<table><thead><tr>", head, "</tr></thead><tbody>\n", rows_,
                        "</tbody></table>\n");
  }

 private:
  const char* ClassOf(size_t column) const {
    const char kind = columns_[column][0];
    return kind == '#'   ? " class=\"number\""
           : kind == '!' ? " class=\"short\""
           : kind == '<' ? " class=\"wide\""
                         : "";
  }
  const char* NameOf(size_t column) const {
    const char* const name = columns_[column];
    return absl::StrContains("#!<", absl::string_view(name, 1)) ? name + 1 : name;
  }

  const std::vector<const char*> columns_;
  std::string rows_;
};

std::string Section(const char* title, const Table& table, const char* nothing) {
  return absl::StrCat(
      "<section><h2>", title, "</h2>\n",
      table.empty() ? absl::StrCat("<p class=\"dim\">", nothing, "</p>\n") : table.Html(),
      "</section>\n");
}

std::string Folded(const char* id, const std::string& title, const Table& table) {
  if (table.empty()) return "";
  return absl::StrCat("<details id=\"", id, "\"><summary>", title, "</summary>\n", table.Html(),
                      "</details>\n");
}

std::string HeaderHtml(const Status& status) {
  return absl::StrCat("<header><h1>tilewire-server ", Html(status.server), "</h1> ",
                      StateHtml(status.state), "<p>", Html(status.host), ", up ",
                      UptimeText(status.uptime), "</p><p>", Html(status.isa), ", ", status.threads,
                      status.threads == 1 ? " thread" : " threads", ", ", Html(status.precision),
                      "</p><p>build ", Html(status.build), "</p><p>", ClockText(status.now),
                      " UTC</p><span id=\"controls\"></span></header>\n");
}

std::string Tile(const std::string& value, absl::string_view name) {
  return absl::StrCat("<div class=\"tile\"><b>", value, "</b><span>", name, "</span></div>\n");
}

std::string TilesHtml(const Status& status) {
  double per_second = 0, failed = 0, requests = 0;
  for (const Status::Model& model : status.models) {
    per_second += model.recent.per_second;
    failed += static_cast<double>(model.recent.failed);
    requests += static_cast<double>(model.recent.requests);
  }
  return absl::StrCat(
      "<div class=\"tiles\">\n", Tile(NumberText(per_second), "requests/s in the last minute"),
      Tile(PercentText(requests > 0 ? failed / requests : 0), "of them failed"),
      Tile(absl::StrCat(status.waiting), "waiting now"),
      Tile(absl::StrCat(status.running), "running now"),
      Tile(PercentText(status.throttled_share), "of CPU time throttled"),
      status.cpu_wait_share ? Tile(PercentText(*status.cpu_wait_share),
                                   "of the last minute compute threads waited for a CPU")
                            : "",
      Tile(MegabytesText(status.work_bytes),
           absl::StrCat("of ", MegabytesText(status.work_limit_bytes), " for requests")),
      Tile(absl::StrCat(status.connections), "connections"), "</div>\n");
}

// The last ten minutes in parts of five seconds.
struct Part {
  int64_t requests = 0;
  double p50_ms = 0, p99_ms = 0;
};
constexpr int64_t kPartSeconds = 5;
constexpr int64_t kParts = static_cast<int64_t>(RecentLoad::kPoints) / kPartSeconds;

std::vector<Part> PartsOf(const Status& status) {
  std::vector<Part> parts(kParts);
  const int64_t end = absl::ToUnixSeconds(status.now);
  for (const RecentLoad::Point& point : status.points) {
    const int64_t ago = (end - point.second) / kPartSeconds;
    if (ago < 0 || ago >= kParts || point.requests == 0) continue;
    Part& part = parts[static_cast<size_t>(kParts - 1 - ago)];
    const auto before = static_cast<double>(part.requests);
    part.requests += point.requests;
    part.p50_ms = (part.p50_ms * before + point.p50_ms * static_cast<double>(point.requests)) /
                  static_cast<double>(part.requests);
    part.p99_ms = std::max(part.p99_ms, point.p99_ms);
  }
  return parts;
}

// A line through the values, from the left to the right edge of ten minutes; negative ones are left
// out.
std::string LineHtml(const std::vector<double>& values, double top, const char* kind) {
  std::string line = absl::StrCat("<polyline", kind, " points=\"");
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) continue;
    absl::StrAppendFormat(&line, "%.0f,%.1f ", 600.0 * static_cast<double>(i) / (kParts - 1),
                          86 - 80 * values[i] / top);
  }
  return absl::StrCat(line, "\"/>");
}

std::string ChartHtml(const std::string& caption, const std::string& lines) {
  return absl::StrCat("<figure><figcaption>", caption,
                      "</figcaption><svg viewBox=\"0 0 600 90\" preserveAspectRatio=\"none\" "
                      "role=\"img\" aria-label=\"",
                      caption, "\">", lines, "</svg></figure>\n");
}

std::string ChartsHtml(const Status& status) {
  if (status.points.empty()) return "<p class=\"dim\">no requests in the last ten minutes</p>\n";
  std::vector<double> rates, p50, p99;
  double most_rate = 0, most_ms = 0;
  for (const Part& part : PartsOf(status)) {
    rates.push_back(static_cast<double>(part.requests) / kPartSeconds);
    p50.push_back(part.requests > 0 ? part.p50_ms : -1);
    p99.push_back(part.requests > 0 ? part.p99_ms : -1);
    most_rate = std::max(most_rate, rates.back());
    most_ms = std::max(most_ms, part.p99_ms);
  }
  return absl::StrCat(
      "<div class=\"charts\">\n",
      ChartHtml(absl::StrCat("requests/s, ten minutes; the top is ", NumberText(most_rate)),
                LineHtml(rates, std::max(most_rate, 1e-9), "")),
      ChartHtml(absl::StrCat("latency, p50 solid and p99 dashed; the top is ", MsText(most_ms)),
                absl::StrCat(LineHtml(p50, std::max(most_ms, 1e-9), ""),
                             LineHtml(p99, std::max(most_ms, 1e-9), " class=\"second\""))),
      "</div>\n");
}

std::string ModelsHtml(const Status& status) {
  Table table({"model", "!version", "!state", "#req/s", "#p50", "#p99", "#waiting", "#rows/run",
               "#running", "#cores", "#all requests", "#all failed", "#memory", "<remark"});
  for (const Status::Model& model : status.models) {
    const RecentLoad::OfModel& recent = model.recent;
    const auto if_used = [&recent](const std::string& text) {
      return recent.requests > 0 ? text : "";
    };
    table.Add({Html(model.name), absl::StrCat(model.version), StateHtml(model.state),
               if_used(NumberText(recent.per_second)), MsText(recent.p50_ms), MsText(recent.p99_ms),
               if_used(PercentText(recent.waiting_share)),
               recent.rows_per_run > 0 ? NumberText(recent.rows_per_run) : "",
               if_used(NumberText(recent.running)), if_used(NumberText(recent.cores)),
               model.requests > 0 ? absl::StrCat(model.requests) : "",
               model.failed > 0 ? absl::StrCat(model.failed) : "",
               model.bytes > 0 ? MegabytesText(model.bytes) : "", Html(model.remark)});
  }
  return Section("Models, in the last minute", table, "no models");
}

std::string SlowHtml(const Status& status) {
  Table table({"!at, UTC", "#took", "model", "id", "!outcome", "<why"});
  for (const Status::Slow& slow : status.slowest) {
    table.Add({ClockText(slow.at), MsText(slow.total_ms),
               slow.model.empty() ? "" : absl::StrCat(Html(slow.model), " ", slow.version),
               Html(slow.id), Html(slow.code), Html(slow.words)});
  }
  return Section("Slowest requests of the last hour (<code>tilewire slow</code>)", table,
                 "none yet");
}

std::string LayersHtml(const Status& status) {
  Table table({"model", "#runs", "#steps", "<costliest steps"});
  for (const Status::Layers& layers : status.layers) {
    std::string steps;
    for (const Status::Layers::Step& step : layers.costliest) {
      absl::StrAppend(&steps, steps.empty() ? "" : ", ", Html(step.node), " ",
                      PercentText(step.share));
    }
    table.Add({absl::StrCat(Html(layers.model), " ", layers.version), absl::StrCat(layers.runs),
               absl::StrCat(layers.steps), steps});
  }
  return Section("Layers: where the time of runs went (<code>tilewire explain MODEL --live</code>)",
                 table, "no runs yet");
}

std::string LinesHtml(const Status& status) {
  Table table({"!at, UTC", "!level", "<text"});
  for (const Status::Line& line : status.lines)
    table.Add({ClockText(line.at), Html(line.level), Html(line.text)});
  return Section("Latest warnings and errors", table, "none");
}

std::string MemoryHtml(const Status& status) {
  int64_t models = 0;
  for (const Status::Model& model : status.models) models += model.bytes;
  return absl::StrCat("<section><h2>Memory</h2><p>requests ", MegabytesText(status.work_bytes),
                      " of ", MegabytesText(status.work_limit_bytes), ", models ",
                      MegabytesText(models), ", compiled code ", MegabytesText(status.code_bytes),
                      "</p></section>\n");
}

std::string FlagsHtml(const Status& status) {
  std::vector<const Status::Flag*> sorted;
  for (const Status::Flag& flag : status.flags) sorted.push_back(&flag);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->changed > b->changed; });
  Table table({"!flag", "<value", "!from"});
  for (const Status::Flag* flag : sorted) {
    table.Add({absl::StrCat("--", Html(flag->name)), Html(flag->value),
               flag->changed ? "<b>given</b>" : "default"});
  }
  return Folded("flags", "Flags", table);
}

std::string ThreadsHtml(const Status& status) {
  Table table({"!thread", "!state", "#CPU time"});
  for (const Status::Thread& thread : status.threads_of_process) {
    table.Add({Html(thread.name), Html(absl::string_view(&thread.state, 1)),
               absl::StrCat(NumberText(thread.cpu_seconds), " s")});
  }
  return Folded("threads", absl::StrCat("Threads (", status.threads_of_process.size(), ")"), table);
}

std::string LogHtml(const Status& status) {
  return absl::StrCat("<p class=\"dim\">log lines lost: ", status.lost_lines,
                      "; requests that came too fast to be looked at: ", status.missed_records,
                      "</p>\n");
}

}  // namespace

std::string StatusPage(const Status& status, absl::string_view nonce) {
  const std::string main =
      absl::StrCat(HeaderHtml(status), TilesHtml(status), ChartsHtml(status), ModelsHtml(status),
                   SlowHtml(status), LayersHtml(status), MemoryHtml(status), LinesHtml(status),
                   LogHtml(status), FlagsHtml(status), ThreadsHtml(status));
  const std::string title = absl::StrCat(Html(status.host), ": ", Html(status.state));
  return absl::StrReplaceAll(kTemplate,
                             {{"{{nonce}}", nonce}, {"{{title}}", title}, {"{{main}}", main}});
}

std::string StatusPolicy(absl::string_view nonce) {
  return absl::StrCat("default-src 'none'; style-src 'nonce-", nonce, "'; script-src 'nonce-",
                      nonce, "'; connect-src 'self'; base-uri 'none'; form-action 'none'; ",
                      "frame-ancestors 'none'");
}

}  // namespace tilewire::service
