// SPDX-License-Identifier: Apache-2.0
#include "client/top/text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

constexpr int kLeastName = 8, kMostName = 40;

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
  int rank;   // 0: always told; those with the highest go first
  std::string (*text)(const Row&);
};

constexpr Column kTopColumns[] = {
    {"version", 8, 4, [](const Row& row) { return ShownText(row.version->version); }},
    {"req/s", 7, 0, [](const Row& row) { return RateText(row.version->requests_per_s); }},
    {"rows/s", 7, 8, [](const Row& row) { return RateText(row.version->rows_per_s); }},
    {"p50 ms", 7, 0, [](const Row& row) { return QuantileText(row.version->p50_ms); }},
    {"p99 ms", 7, 0, [](const Row& row) { return QuantileText(row.version->p99_ms); }},
    {"queued", 7, 2,
     [](const Row& row) {
       const std::optional<double>& share = row.version->queue_share;
       return share ? absl::StrFormat("%.0f %%", 100 * *share) : "-";
     }},
    {"cores", 6, 1, [](const Row& row) { return absl::StrFormat("%.2f", row.version->cores); }},
    {"wait", 5, 5, [](const Row& row) { return OfModel(row, row.model->waiting); }},
    {"run", 4, 6, [](const Row& row) { return OfModel(row, row.model->running); }},
    {"err/s", 6, 3, [](const Row& row) { return SeldomText(row.version->errors_per_s); }},
    {"refused", 8, 7, [](const Row& row) { return SeldomText(row.version->refused_per_s); }},
};

int WidthOf(absl::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// At most so many characters of UTF-8; one that was cut ends with '~'.
std::string Cut(const std::string& text, int width) {
  if (WidthOf(text) <= width) return text;
  size_t end = 0;
  for (int seen = 0; end < text.size(); ++end) {
    if ((text[end] & 0xC0) != 0x80 && seen++ == width - 1) break;
  }
  return absl::StrCat(text.substr(0, end), "~");
}

std::string Padded(const std::string& text, int width) {
  return absl::StrCat(text, std::string(std::max(0, width - WidthOf(text)), ' '));
}

std::vector<const Column*> ColumnsWithin(int width) {
  std::vector<const Column*> columns;
  int taken = 0;
  for (const Column& column : kTopColumns) {
    columns.push_back(&column);
    taken += column.width;
  }
  while (taken > width) {
    const auto least =
        std::max_element(columns.begin(), columns.end(),
                         [](const auto* a, const auto* b) { return a->rank < b->rank; });
    if ((*least)->rank == 0) break;
    taken -= (*least)->width;
    columns.erase(least);
  }
  return columns;
}

class Table {
 public:
  Table(std::vector<Row> rows, int columns)
      : rows_(std::move(rows)),
        columns_(ColumnsWithin(columns == TopSize::kAny ? columns : columns - kLeastName)) {
    int longest = kLeastName, taken = 0;
    for (const Row& row : rows_) longest = std::max(longest, WidthOf(ShownText(row.model->name)));
    for (const Column* column : columns_) taken += column->width;
    const int left = columns == TopSize::kAny ? kMostName : columns - taken;
    name_width_ = std::clamp(longest, kLeastName, std::max(kLeastName, std::min(left, kMostName)));
  }

  std::string Heading() const {
    std::string line = Padded("model", name_width_);
    for (const Column* column : columns_)
      absl::StrAppendFormat(&line, "%*s", column->width, column->heading);
    return line;
  }

  std::string Line(const Row& row) const {
    std::string line = Padded(Cut(ShownText(row.model->name), name_width_), name_width_);
    const VersionInterval& version = *row.version;
    if (version.state != "READY" && version.requests_per_s == 0 && version.errors_per_s == 0) {
      absl::StrAppendFormat(&line, "%8s  ", ShownText(version.version));
      absl::StrAppend(&line, ShownText(version.state), version.reason.empty() ? "" : ": ",
                      ShownText(version.reason));
      return line;
    }
    for (const Column* column : columns_)
      absl::StrAppendFormat(&line, "%*s", column->width, column->text(row));
    return line;
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
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

std::vector<std::string> HeaderOf(const TopInterval& top, absl::string_view address) {
  int64_t waiting = 0, running = 0;
  for (const ModelInterval& model : top.models) {
    waiting += model.waiting;
    running += model.running;
  }
  std::string unnamed;
  if (top.unnamed_errors_per_s > 0) {
    unnamed = absl::StrCat(", ", RateText(top.unnamed_errors_per_s),
                           " errors/s that named no model here");
  }
  return {
      absl::StrCat(ShownText(top.state), "  tilewire ", ShownText(top.server_version), " at ",
                   address, "  up ", UptimeText(top.uptime), "  ",
                   CountText(top.connections, "connection")),
      absl::StrFormat("cores %.2f of %d busy  throttled %.1f %%  memory %s of %s, models %s",
                      top.Cores(), top.cores, 100 * top.throttled_share, BytesText(top.work_bytes),
                      BytesText(top.work_limit_bytes), BytesText(top.held_bytes)),
      absl::StrCat(RateText(top.RequestsPerSecond()), " requests/s in the last ",
                   absl::StrFormat("%.1f s", absl::ToDoubleSeconds(top.length)), ", ", waiting,
                   " waiting, ", running, " running", unnamed)};
}

}  // namespace

std::string TopText(const TopInterval& top, absl::string_view address, const TopSize& size) {
  const Table table(RowsOf(top), size.columns);
  std::vector<std::string> lines = HeaderOf(top, address);
  lines.push_back("");
  lines.push_back(table.Heading());
  const auto all = static_cast<int64_t>(table.rows().size());
  int64_t shown = std::clamp<int64_t>(size.lines - static_cast<int64_t>(lines.size()), 0, all);
  if (shown < all) shown = std::max<int64_t>(0, shown - 1);
  for (int64_t i = 0; i < shown; ++i) lines.push_back(table.Line(table.rows()[i]));
  if (shown < all) lines.push_back(absl::StrCat(CountText(all - shown, "more version")));
  if (all == 0) lines.push_back("the server has no models");
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, Cut(line, size.columns), "\n");
  return text;
}

}  // namespace tilewire::client
