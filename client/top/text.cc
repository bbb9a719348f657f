// SPDX-License-Identifier: Apache-2.0
#include "client/top/text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

// Cells of names: columns go until so many of the longest name are there, then names are cut.
constexpr int kLeastName = 8, kEnoughName = 24, kMostName = 40;
// The columns that stay while there is room for kLeastName cells of names: those of lower ranks.
constexpr int kDroppedBeforeNames = 2;

// A line of the table.
struct Row {
  const ModelInterval* model;
  const VersionInterval* version;
  bool is_highest;  // of its model: the one that tells what waits and runs
};

std::string QuantileText(const std::optional<double>& ms) {
  if (!ms) return "-";
  return *ms >= 1000 ? absl::StrFormat("%.0f", *ms) : absl::StrFormat("%.3g", *ms);
}

// Nothing for nothing, so that what happens stands out.
std::string SeldomText(double per_second) { return per_second > 0 ? RateText(per_second) : "-"; }

std::string OfModel(const Row& row, int64_t count) {
  return row.is_highest ? absl::StrCat(count) : "";
}

struct Column {
  const char* heading;
  int width;  // with the blank before it
  int rank;   // those with the highest go first
  std::string (*text)(const Row&);
};

constexpr Column kTopColumns[] = {
    {"version", 8, 0, [](const Row& row) { return ShownText(row.version->version); }},
    {"req/s", 7, 1, [](const Row& row) { return RateText(row.version->requests_per_s); }},
    {"rows/s", 7, 10, [](const Row& row) { return RateText(row.version->rows_per_s); }},
    {"p50 ms", 7, 3, [](const Row& row) { return QuantileText(row.version->p50_ms); }},
    {"p99 ms", 7, 2, [](const Row& row) { return QuantileText(row.version->p99_ms); }},
    {"queued", 7, 5,
     [](const Row& row) {
       const std::optional<double>& share = row.version->queue_share;
       return share ? absl::StrFormat("%.0f %%", 100 * *share) : "-";
     }},
    {"cores", 6, 4, [](const Row& row) { return absl::StrFormat("%.2f", row.version->cores); }},
    {"wait", 5, 7, [](const Row& row) { return OfModel(row, row.model->waiting); }},
    {"run", 4, 8, [](const Row& row) { return OfModel(row, row.model->running); }},
    {"err/s", 6, 6, [](const Row& row) { return SeldomText(row.version->errors_per_s); }},
    {"refused", 8, 9, [](const Row& row) { return SeldomText(row.version->refused_per_s); }},
};

// The columns that fit beside names of `name` cells.
std::vector<const Column*> ColumnsWithin(int width, int name) {
  std::vector<const Column*> columns;
  int taken = 0;
  for (const Column& column : kTopColumns) {
    columns.push_back(&column);
    taken += column.width;
  }
  while (!columns.empty()) {
    const auto least =
        std::max_element(columns.begin(), columns.end(),
                         [](const auto* a, const auto* b) { return a->rank < b->rank; });
    if (taken <= width - ((*least)->rank < kDroppedBeforeNames ? kLeastName : name)) break;
    taken -= (*least)->width;
    columns.erase(least);
  }
  return columns;
}

int LongestName(const std::vector<Row>& rows) {
  int longest = kLeastName;
  for (const Row& row : rows) longest = std::max(longest, TextWidth(ShownText(row.model->name)));
  return longest;
}

class Table {
 public:
  Table(std::vector<Row> rows, int columns)
      : rows_(std::move(rows)),
        columns_(ColumnsWithin(columns, std::min(LongestName(rows_), kEnoughName))) {
    int left = columns;
    for (const Column* column : columns_) left -= column->width;
    name_width_ = std::min({LongestName(rows_), left, kMostName});
  }

  std::string Heading() const {
    std::string line = PaddedAfter("model", name_width_);
    for (const Column* column : columns_)
      absl::StrAppend(&line, PaddedBefore(column->heading, column->width));
    return line;
  }

  std::string Line(const Row& row) const {
    std::string line = PaddedAfter(CutMiddle(ShownText(row.model->name), name_width_), name_width_);
    const VersionInterval& version = *row.version;
    const bool tells_why =
        version.state != "READY" && version.requests_per_s == 0 && version.errors_per_s == 0;
    for (const Column* column : columns_) {
      absl::StrAppend(&line, PaddedBefore(column->text(row), column->width));
      if (tells_why) break;  // after the version, the first column
    }
    if (tells_why) {
      absl::StrAppend(&line, "  ", ShownText(version.state), version.reason.empty() ? "" : ": ",
                      ShownText(version.reason));
    }
    return line;
  }

  // At most `left` lines: the heading, rows, and how many more there are.
  std::vector<std::string> Lines(int64_t left) const {
    const auto all = static_cast<int64_t>(rows_.size());
    if (left <= 0) return {};
    if (all == 0 && left == 1) return {kNoModels};
    if (all == 0) return {Heading(), kNoModels};
    int64_t shown = std::min(left - 1, all);
    if (shown < all) shown -= 1;
    if (shown <= 0) return {CountText(all, "version")};
    std::vector<std::string> lines = {Heading()};
    for (int64_t i = 0; i < shown; ++i) lines.push_back(Line(rows_[i]));
    if (shown < all) lines.push_back(CountText(all - shown, "more version"));
    return lines;
  }

 private:
  static constexpr char kNoModels[] = "the server has no models";

  const std::vector<Row> rows_;
  const std::vector<const Column*> columns_;
  int name_width_ = kLeastName;
};

std::vector<Row> RowsOf(const TopInterval& top) {
  std::vector<Row> rows;
  for (const ModelInterval& model : top.models) {
    for (const VersionInterval& version : model.versions)
      rows.push_back({&model, &version, &version == &model.versions.back()});
  }
  const auto work = [](const Row& row) {
    return std::pair(row.version->cores, row.version->requests_per_s);
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return work(a) > work(b); });
  return rows;
}

// "3 d 4 h", "4 h 5 min", "12 min 7 s", "9 s"
std::string UptimeText(absl::Duration uptime) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(uptime));
  const int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (days > 0) return absl::StrFormat("%d d %d h", days, hours % 24);
  if (hours > 0) return absl::StrFormat("%d h %d min", hours, minutes % 60);
  if (minutes > 0) return absl::StrFormat("%d min %d s", minutes, seconds % 60);
  return absl::StrFormat("%d s", seconds);
}

// Nothing where others hardly took the CPU.
std::string CpuWaitText(const TopInterval& top) {
  constexpr double kWorthAWord = 0.1;
  if (top.cpu_wait_share.value_or(0) < kWorthAWord) return "";
  return absl::StrFormat("  waited for a CPU %.0f %%", 100 * *top.cpu_wait_share);
}

// The parts that fit one line, whole; the first is cut if it does not.
std::string LineOf(const std::vector<std::string>& parts, int columns) {
  std::string line = CutEnd(parts.front(), columns);
  for (size_t i = 1; i < parts.size(); ++i)
    if (TextWidth(line) + TextWidth(parts[i]) <= columns) line += parts[i];
  return line;
}

std::vector<std::string> HeaderOf(const TopInterval& top, absl::string_view address, int columns) {
  int64_t waiting = 0, running = 0;
  for (const ModelInterval& model : top.models) {
    waiting += model.waiting;
    running += model.running;
  }
  const std::string memory =
      absl::StrCat("  memory ", BytesText(top.work_bytes), " of ", BytesText(top.work_limit_bytes));
  const std::string unnamed = top.unnamed_errors_per_s > 0
                                  ? absl::StrCat(", ", RateText(top.unnamed_errors_per_s),
                                                 " errors/s that named no version here")
                                  : "";
  return {LineOf({ShownText(top.state), absl::StrCat("  tilewire ", ShownText(top.server_version)),
                  absl::StrCat(" at ", address), absl::StrCat("  up ", UptimeText(top.uptime)),
                  absl::StrCat("  ", CountText(top.connections, "connection"))},
                 columns),
          LineOf({absl::StrFormat("cores %.2f of %d busy", top.Cores(), top.cores),
                  absl::StrFormat("  throttled %.1f %%", 100 * top.throttled_share),
                  CpuWaitText(top), memory, absl::StrCat(", models ", BytesText(top.held_bytes))},
                 columns),
          LineOf({absl::StrCat(RateText(top.RequestsPerSecond()), " requests/s"),
                  absl::StrFormat(" in the last %.1f s", absl::ToDoubleSeconds(top.length)),
                  absl::StrCat(", ", waiting, " waiting"), absl::StrCat(", ", running, " running"),
                  unnamed},
                 columns)};
}

std::string Joined(const std::vector<std::string>& lines, int columns) {
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, CutEnd(line, columns), "\n");
  return text;
}

}  // namespace

std::string TopText(const TopInterval& top, absl::string_view address, const TopSize& size) {
  constexpr int64_t kLeastTable = 3;  // the heading, a row, how many more there are
  std::vector<std::string> lines = HeaderOf(top, address, size.columns);
  lines.push_back("");
  while (lines.size() > 1 && static_cast<int64_t>(lines.size()) > size.lines - kLeastTable)
    lines.pop_back();
  const Table table(RowsOf(top), size.columns);
  for (std::string& line : table.Lines(size.lines - static_cast<int64_t>(lines.size())))
    lines.push_back(std::move(line));
  return Joined(lines, size.columns);
}

std::string NoAnswerText(absl::string_view reason, absl::string_view address, double interval_s,
                         const TopSize& size) {
  std::vector<std::string> lines = {
      LineOf({absl::StrCat("no answer from ", address),
              absl::StrFormat("; asked again every %g s", interval_s), ", Ctrl-C ends"},
             size.columns)};
  const std::string shown = ShownText(reason);
  absl::string_view left = shown;
  while (!left.empty() && static_cast<int64_t>(lines.size()) < size.lines) {
    const absl::string_view line = Beginning(left, size.columns);
    if (line.empty()) break;
    lines.emplace_back(line);
    left.remove_prefix(line.size());
  }
  return Joined(lines, size.columns);
}

}  // namespace tilewire::client
