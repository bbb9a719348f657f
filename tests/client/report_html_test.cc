// SPDX-License-Identifier: Apache-2.0
//
// The page of a load's report, and what its charts show.
#include "client/load/report/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/client/load_reports.h"

namespace tilewire::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportHtml, IsOnePageThatAsksForNothing) {
  LoadReport odd = FiveSeconds();
  odd.name = "<b>4</b> callers";
  odd.errors[absl::StatusCode::kUnavailable] = 3;
  odd.parts.push_back({.name = "other"});
  for (int i = 0; i < 100; ++i) odd.server.network.Add(absl::Milliseconds(1));
  odd.server.reorder = odd.server.network;
  const std::string html = ToHtml({.title = "digits & <co>", .runs = {FiveSeconds(), odd}});
  EXPECT_THAT(html, AllOf(HasSubstr("digits &amp; &lt;co&gt;"), HasSubstr("&lt;b&gt;4&lt;/b&gt;"),
                          HasSubstr("Latency by percentile"), HasSubstr("<polyline"),
                          HasSubstr("UNAVAILABLE"), HasSubstr("Parts of the mix"),
                          HasSubstr("<th>queue<th>reorder<th>compute<th>encode<th>network"),
                          HasSubstr("<td><td>1.00 ms / 1.00 ms<td><td><td>1.00 ms / 1.00 ms")));
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import", "<script"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(ReportHtml, ADoubtThatRunsShareIsSaidOnce) {
  LoadReport first = FiveSeconds(), second = FiveSeconds();
  first.name = "40/s", second.name = "80/s";
  first.lateness = second.lateness = {};
  first.lateness.Add(absl::Milliseconds(200));
  second.lateness.Add(absl::Milliseconds(300));
  first.first_error = "UNAVAILABLE: a queue is full", second.first_error = "INTERNAL: oh";
  const std::string html = ToHtml({.title = "t", .runs = {first, second}});
  EXPECT_THAT(html, HasSubstr("<li>40/s: requests left up to "));
  EXPECT_THAT(html, HasSubstr("; likewise: 80/s</li>"));
  EXPECT_THAT(html, Not(HasSubstr("80/s: requests left")));
  EXPECT_THAT(html, AllOf(HasSubstr("40/s: first error: UNAVAILABLE: a queue is full"),
                          HasSubstr("80/s: first error: INTERNAL: oh")));
}

using Points = std::vector<std::pair<double, double>>;

// The figure of the first caption that begins so.
std::string FigureOf(const std::string& html, const std::string& caption) {
  const size_t begin = html.find("<figcaption>" + caption);
  return begin == std::string::npos ? ""
                                    : html.substr(begin, html.find("</figure>", begin) - begin);
}

// The points of each of its lines.
std::vector<Points> LinesOf(const std::string& figure) {
  std::vector<Points> lines;
  for (size_t at = figure.find("points=\""); at != std::string::npos;
       at = figure.find("points=\"", at)) {
    at += 8;
    lines.emplace_back();
    const std::string text = figure.substr(at, figure.find('"', at) - at);
    for (absl::string_view point : absl::StrSplit(text, ' ')) {
      const std::vector<std::string> both = absl::StrSplit(point, ',');
      lines.back().emplace_back(std::stod(both.at(0)), std::stod(both.at(1)));
    }
  }
  return lines;
}

// Their heights, of the dots of a figure.
std::vector<double> DotsOf(const std::string& figure) {
  std::vector<double> heights;
  for (size_t at = figure.find(" cy="); at != std::string::npos; at = figure.find(" cy=", at + 1))
    heights.push_back(std::stod(figure.substr(at + 4)));
  return heights;
}

std::string ColorOf(const std::string& html, const std::string& row) {
  const size_t end = html.find("\"></span>" + row);
  return end == std::string::npos ? "none" : html.substr(end - 7, 7);
}

// A second whose answers took 1 ms, but for the one that took longest.
LoadWindow Second(double start_s, int answers, absl::Duration largest = absl::Milliseconds(2)) {
  LoadWindow window{.start_s = start_s, .answered = answers};
  if (answers == 0) return window;
  window.latencies.assign(answers, absl::Milliseconds(1));
  window.latencies.back() = largest;
  window.p50 = absl::Milliseconds(1);
  window.p99 = window.largest = largest;
  if (answers >= 100) window.latencies.clear();
  return window;
}

std::string PageOf(const LoadReport& report) { return ToHtml({.title = "t", .runs = {report}}); }

constexpr double kBottom = 205;  // of the charts' lines: the value 0

// Ten seconds at 20/s, in two of which the server stood still; the third one has what was due.
TEST(ReportHtml, APauseOfTwoSecondsIsSeenInBothChartsOverTime) {
  LoadReport report = FiveSeconds();
  report.windows.clear();
  for (int i = 0; i < 10; ++i) report.windows.push_back(Second(i, 20));
  report.windows[4] = report.windows[5] = LoadWindow();
  report.windows[4].start_s = 4, report.windows[5].start_s = 5;
  report.windows[6] = Second(6, 60, absl::Seconds(2));
  const std::string html = PageOf(report);

  const std::vector<Points> counts = LinesOf(FigureOf(html, "Answers in each second"));
  ASSERT_EQ(counts.size(), 1);
  ASSERT_EQ(counts[0].size(), 20) << "ten seconds, the two ends of each";
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(counts[0][2 * i].second == kBottom, i == 4 || i == 5) << "second " << i;
    EXPECT_EQ(counts[0][2 * i].second, counts[0][2 * i + 1].second) << "second " << i;
  }
  const std::string latency = FigureOf(html, "Latency over time");
  const std::vector<double> largest = DotsOf(latency);
  ASSERT_EQ(largest.size(), 8) << "a dot for each second with an answer";
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(largest[i], i == 4 ? *std::min_element(largest.begin(), largest.end()) : largest[0]);
  // The p99 of seconds 0 to 6 with 140 answers, which the last three join.
  const std::vector<Points> lines = LinesOf(latency);
  ASSERT_GE(lines.size(), 2);
  ASSERT_EQ(lines[0].size(), 2) << "one span from its start to its end";
  EXPECT_LT(lines[0][0].first, 63);
  EXPECT_GT(lines[0][1].first, 379);
}

TEST(ReportHtml, ARampShowsAllItsSeconds) {
  LoadReport report = FiveSeconds();
  report.changes = true;
  report.windows.clear();
  for (int i = 0; i < 8; ++i) report.windows.push_back(Second(i, 5 + 7 * i));
  const std::vector<Points> lines = LinesOf(FigureOf(PageOf(report), "Answers in each second"));
  ASSERT_EQ(lines.size(), 1);
  ASSERT_EQ(lines[0].size(), 16);
  for (int i = 0; i < 7; ++i) {
    EXPECT_GT(lines[0][2 * i].second, lines[0][2 * i + 2].second) << "higher from second to second";
    EXPECT_EQ(lines[0][2 * i + 1].first, lines[0][2 * i + 2].first) << "without a gap";
  }
}

// Three times 40 answers are enough for a p99; what follows has enough by itself.
TEST(ReportHtml, APercentileIsDrawnOverTheTimeThatItIsOf) {
  LoadReport report = FiveSeconds();
  report.windows = {Second(0, 40), Second(1, 40), Second(2, 40), Second(3, 100), Second(4, 100)};
  const std::vector<Points> lines = LinesOf(FigureOf(PageOf(report), "Latency over time"));
  ASSERT_FALSE(lines.empty());
  ASSERT_EQ(lines[0].size(), 6);
  const double second = (lines[0][5].first - lines[0][0].first) / 5;
  EXPECT_NEAR(lines[0][1].first - lines[0][0].first, 3 * second, 0.11);
  EXPECT_NEAR(lines[0][3].first - lines[0][2].first, second, 0.11);
}

TEST(ReportHtml, FewAnswersHaveNoP99) {
  LoadReport report = FiveSeconds();
  report.windows = {Second(0, 20), Second(1, 20), Second(2, 20)};
  const std::string latency = FigureOf(PageOf(report), "Latency over time");
  EXPECT_EQ(LinesOf(latency).size(), 1) << "p50 alone";
  EXPECT_THAT(latency, HasSubstr("stroke-dasharray"));
  EXPECT_EQ(DotsOf(latency).size(), 3);
}

TEST(ReportHtml, PartsOfAMixHaveColorsOfTheirOwn) {
  LoadReport report = FiveSeconds();
  report.parts.push_back({.name = "resnet50", .answered = 500, .latencies = report.latencies});
  const std::string html = PageOf(report);
  EXPECT_NE(ColorOf(html, "digits"), ColorOf(html, "resnet50"));
  const std::string figure = FigureOf(html, "Latency by percentile, parts");
  EXPECT_EQ(LinesOf(figure).size(), 2);
  EXPECT_THAT(figure, HasSubstr(ColorOf(html, "resnet50")));
}

TEST(ReportHtml, OnlyRunsThatAreDrawnHaveAColor) {
  LoadRecord record{.title = "t"};
  for (int i = 0; i < 10; ++i) {
    record.runs.push_back(FiveSeconds());
    record.runs.back().name = absl::StrCat("run ", i);
  }
  const std::string html = ToHtml(record);
  EXPECT_EQ(ColorOf(html, "run 8"), "none");
  std::set<std::string> colors;
  for (int i = 0; i < 8; ++i) colors.insert(ColorOf(html, absl::StrCat("run ", i)));
  EXPECT_EQ(colors.size(), 8);
  EXPECT_THAT(html, HasSubstr("The charts show the 8 runs that have a color."));
  record.bound = "p99 <= 20 ms";
  EXPECT_EQ(ColorOf(ToHtml(record), "run 1"), "none") << "of a search the last runs are drawn";
  EXPECT_NE(ColorOf(ToHtml(record), "run 9"), "none");
}

// The runs of a search jump from rate to rate, and several are at the same one.
TEST(ReportHtml, LatencyByRateAscends) {
  LoadRecord record{.title = "t", .bound = "p99 <= 20 ms"};
  for (const double rate : {100.0, 400.0, 200.0, 400.0, 300.0, 200.0, 200.0}) {
    record.runs.push_back(FiveSeconds());
    record.runs.back().offered = rate;
  }
  const std::string figure = FigureOf(ToHtml(record), "p50 (blue) and p99 (orange) by rate");
  const std::vector<Points> lines = LinesOf(figure);
  ASSERT_EQ(lines.size(), 2) << "p50 and p99";
  for (const Points& line : lines) {
    ASSERT_EQ(line.size(), 4) << "a point for each rate";
    for (size_t i = 1; i < line.size(); ++i) EXPECT_GT(line[i].first, line[i - 1].first);
  }
  EXPECT_EQ(DotsOf(figure).size(), 14) << "two for each run";
}

TEST(ReportHtml, StatesWhereTheFiguresComeFrom) {
  LoadRecord record{.title = "t", .runs = {FiveSeconds()}};
  record.origins = {{.load = "1f",
                     .server = "1:2 (double 1)",
                     .client = "tilewire 1.2",
                     .host = "loader-<3>, 2 cores",
                     .seed = 7,
                     .began = absl::FromUnixSeconds(999)}};
  const std::string html = ToHtml(record);
  const size_t charts = html.find("<h2>Charts"), measured = html.find("<h2>Measured");
  EXPECT_THAT(
      html.substr(0, charts) + html.substr(measured),
      AllOf(HasSubstr("<td>1:2 (double 1)<td>tilewire 1.2<td>loader-&lt;3&gt;, 2 cores<td>7"
                      "<td>1970-01-01 00:16:39 UTC"),
            HasSubstr("<td>5.0 s<td>4<td>500<td>100<td>5.50 ms"),
            HasSubstr("<td>9.01 ms <small>(50)</small><td>10.0 ms <small>(5)</small><td>-")));
}

TEST(ReportHtml, NothingAnsweredIsAPageToo) {
  EXPECT_THAT(ToHtml({.title = "t", .runs = {LoadReport()}}), HasSubstr("</html>"));
}

}  // namespace
}  // namespace tilewire::client
