// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a load's report: files, merging, judgements.
#include "client/load/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "client/load/objective.h"
#include "client/load/record.h"
#include "client/load/report_html.h"
#include "client/load/report_text.h"
#include "client/load/stability.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

// Five seconds of 100 answers each, which took 1 to 10 ms.
LoadReport FiveSeconds(absl::Time started = absl::FromUnixSeconds(1000)) {
  LoadReport report;
  report.name = "open loop of 100/s (poisson)";
  report.offered = 100;
  report.connections = 4;
  report.started = started;
  report.elapsed = absl::Seconds(5);
  report.cpu = absl::Seconds(1);
  report.threads = 2;
  for (int i = 0; i < 500; ++i) {
    report.latencies.Add(absl::Milliseconds(1 + i % 10));
    report.service.Add(absl::Milliseconds(1));
    report.lateness.Add(absl::Microseconds(50));
  }
  report.answered = 500;
  for (int second = 0; second < 5; ++second) {
    report.windows.push_back({.start_s = double(second),
                              .answered = 100,
                              .waiting = 2,
                              .p50 = absl::Milliseconds(5),
                              .p99 = absl::Milliseconds(10)});
  }
  report.parts.push_back({.name = "digits", .answered = 500, .latencies = report.latencies});
  return report;
}

TEST(LoadRecord, JsonLosesNothing) {
  LoadRecord record{.title = "digits \"<&>\" at 1:2",
                    .loads = {"1f", "2e"},
                    .bound = "p99 <= 20 ms",
                    .holds = 90,
                    .fails = 95,
                    .runs = {FiveSeconds(), FiveSeconds()}};
  LoadReport& odd = record.runs[1];
  odd.errors[absl::StatusCode::kUnavailable] = 3;
  odd.first_error = "UNAVAILABLE: \xFF full";
  odd.refusals = 2;
  odd.unsent = 4;
  odd.mismatches = 1;
  odd.changes = odd.ended_early = true;
  odd.think = absl::Milliseconds(20);
  odd.server.compute.Add(absl::Milliseconds(3));
  const std::string json = ToJson(record);
  const auto same = FromJson(json);
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(ToJson(*same), json);
  EXPECT_EQ(same->title, record.title);
  EXPECT_EQ(same->fails, 95);
  EXPECT_THAT(same->loads, ElementsAre("1f", "2e"));
  EXPECT_EQ(same->runs[1].think, absl::Milliseconds(20));
  ASSERT_EQ(same->runs.size(), 2);
  EXPECT_EQ(same->runs[0].latencies.Percentile(99), record.runs[0].latencies.Percentile(99));
  EXPECT_THAT(same->runs[1].errors, ElementsAre(Pair(absl::StatusCode::kUnavailable, 3)));
  EXPECT_EQ(same->runs[1].server.compute.Mean(), absl::Milliseconds(3));
  EXPECT_EQ(same->runs[1].started, absl::FromUnixSeconds(1000));
}

TEST(LoadRecord, OtherFilesAreRefused) {
  for (const char* text :
       {"", "{", "[]", "{}", "{\"tilewire_load\": 2}", "{\"tilewire_load\": 1, \"title\": 3}"})
    EXPECT_THAT(FromJson(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
}

TEST(LoadRecord, CsvHasAsManyCellsInEachRow) {
  LoadReport report = FiveSeconds();
  report.server.reorder.Add(absl::Milliseconds(2));
  const std::string csv = ToCsv({.runs = {report}});
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1 + 1 + 1 + 5);
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','))
        << line;
  }
  EXPECT_THAT(lines[1], HasSubstr("\"open loop of 100/s (poisson)\",0,5,500,100,0,"));
  EXPECT_THAT(lines[3], HasSubstr(",5,"));
  EXPECT_THAT(lines[0], EndsWith("queue_p50_ms,queue_p99_ms,reorder_p50_ms,reorder_p99_ms,compute_"
                                 "p50_ms,compute_p99_ms,encode_p50_ms,encode_p99_ms,network_p50_ms,"
                                 "network_p99_ms"));
  EXPECT_THAT(lines[1], EndsWith(",,,2,2,,,,,,"));
}

TEST(LoadReport, GeneratorsAreAdded) {
  LoadReport first = FiveSeconds(), second = FiveSeconds(absl::FromUnixSeconds(1002));
  second.latencies.Add(absl::Seconds(1));
  second.answered = 501;
  second.errors[absl::StatusCode::kUnavailable] = 3;
  // The later one is added to the earlier one, whichever is asked.
  for (LoadReport* merged : {&first, &second}) {
    const LoadReport other = merged == &first ? second : FiveSeconds();
    merged->Merge(other);
    EXPECT_EQ(merged->answered, 1001);
    EXPECT_EQ(merged->offered, 200);
    EXPECT_EQ(merged->elapsed, absl::Seconds(7));
    EXPECT_EQ(merged->latencies.Percentile(100), absl::Seconds(1));
    EXPECT_EQ(merged->error_count(), 3);
    ASSERT_EQ(merged->windows.size(), 7);
    EXPECT_EQ(merged->windows[1].answered, 100);
    EXPECT_EQ(merged->windows[2].answered, 200);
    EXPECT_EQ(merged->windows[6].answered, 100);
    ASSERT_EQ(merged->parts.size(), 1);
    EXPECT_EQ(merged->parts[0].answered, 1000);
    EXPECT_EQ(merged->started, absl::FromUnixSeconds(1000));
  }
}

TEST(LoadRecord, RunsAreMergedOneByOne) {
  const LoadRecord two{.title = "a", .runs = {FiveSeconds(), FiveSeconds()}};
  const auto merged = MergeRecords({two, two, two});
  ASSERT_THAT(merged, IsOk());
  ASSERT_EQ(merged->runs.size(), 2);
  EXPECT_EQ(merged->runs[1].answered, 1500);
  EXPECT_THAT(MergeRecords({two, {.runs = {FiveSeconds()}}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(MergeRecords({}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LoadRecord, ALoadIsMergedOnce) {
  const LoadRecord one{.loads = {NewLoadName()}, .runs = {FiveSeconds()}};
  const LoadRecord other{.loads = {NewLoadName()}, .runs = {FiveSeconds()}};
  const auto both = MergeRecords({one, other});
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(both->loads, ElementsAre(one.loads[0], other.loads[0]));
  EXPECT_THAT(MergeRecords({one, other, one}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("report 3 ")));
  EXPECT_THAT(MergeRecords({*both, other}), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Stability, EqualSecondsAreStable) {
  EXPECT_THAT(WhyUnstable(FiveSeconds()), IsEmpty());
  EXPECT_THAT(ClientLimits(FiveSeconds()), IsEmpty());
}

TEST(Stability, ReasonsNameTheSecond) {
  LoadReport report = FiveSeconds();
  report.windows[2].answered = 40;
  EXPECT_THAT(WhyUnstable(report), ElementsAre("second 3 had 40 answers, the median second 100"));
  report.windows[2].answered = 100;
  report.windows[4].p50 = absl::Milliseconds(12);
  EXPECT_THAT(WhyUnstable(report),
              ElementsAre("second 5 had a p50 of 12.0 ms, the median second 5.00 ms"));
  // A rate that changes by intention is not blamed.
  report.changes = true;
  EXPECT_THAT(WhyUnstable(report), IsEmpty());
}

TEST(Stability, AGrowingBacklogIsNamed) {
  LoadReport report = FiveSeconds();
  for (int second = 0; second < 5; ++second) report.windows[second].waiting = 20 * second;
  EXPECT_THAT(WhyUnstable(report), Contains(HasSubstr("cannot keep up")));
}

TEST(Stability, FewSecondsSayNothing) {
  LoadReport report = FiveSeconds();
  report.windows.resize(2);
  EXPECT_THAT(WhyUnstable(report), ElementsAre(HasSubstr("fewer than three seconds")));
}

TEST(Stability, ABusyClientIsNamed) {
  LoadReport report = FiveSeconds();
  report.cpu = absl::Seconds(9.5);
  EXPECT_THAT(ClientLimits(report), ElementsAre(HasSubstr("1.90 cores")));
  for (int i = 0; i < 20; ++i) report.lateness.Add(absl::Milliseconds(3));
  EXPECT_THAT(ClientLimits(report), Contains(HasSubstr("late")));
}

TEST(Objective, JudgesEachCondition) {
  struct Case {
    const char* condition;
    bool met;
  };
  constexpr Case kCases[] = {
      {"p99<20ms", true},   {"p50<=1ms", false},       {"p99.9<0.0101s", true},
      {"max<10ms", false},  {"max<=10.1ms", true},     {"mean>5ms", true},
      {"rate=100", true},   {"rate>100", false},       {"rows>=100", true},
      {"errors=0", true},   {"unsent>=1", false},      {"mismatches=0", true},
      {"refusals<1", true}, {"error_share<0.01", true}};
  for (const Case& c : kCases) {
    const auto objective = Objective::Parse(c.condition);
    ASSERT_THAT(objective, IsOk()) << c.condition;
    EXPECT_EQ(objective->IsMet(FiveSeconds()), c.met) << c.condition;
  }
  const auto both = Objective::Parse("p99 < 20ms, errors>0");
  ASSERT_THAT(both, IsOk());
  EXPECT_FALSE(both->IsMet(FiveSeconds()));
  EXPECT_EQ(VerdictText(both->Judge(FiveSeconds())),
            "met         p99<20ms: 10.0 ms\nNOT MET     errors>0: 0\n");
}

TEST(Objective, NothingAnsweredMeetsNoLatency) {
  EXPECT_FALSE(Objective::Parse("p99<20ms")->IsMet(LoadReport()));
  EXPECT_FALSE(Objective::Parse("error_share<0.5")->IsMet(LoadReport()));
  EXPECT_TRUE(Objective::Parse("")->IsMet(LoadReport()));
}

TEST(Objective, RefusesOtherWords) {
  for (const char* text : {"p99", "p99<20", "p101<1ms", "pp<1ms", "speed>1", "errors=zero",
                           "errors==0", "rate=<5", "p99<20ms,", "p99<nan", "<5"})
    EXPECT_THAT(Objective::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
}

TEST(ReportText, SaysWhatWasMeasured) {
  LoadReport report = FiveSeconds();
  report.errors[absl::StatusCode::kUnavailable] = 3;
  report.refusals = 2;
  const std::string text = ReportText(report);
  EXPECT_THAT(text, Not(HasSubstr("where the time went")));
  EXPECT_THAT(text, AllOf(HasSubstr("throughput  100.0 requests/s"), HasSubstr("3 UNAVAILABLE"),
                          HasSubstr("2 of them were refusals"), HasSubstr("20 % of a core"),
                          Not(HasSubstr("--rate"))));
  report.offered = 0;
  EXPECT_THAT(ReportText(report), HasSubstr("--rate=70"));
  report.server.network.Add(absl::Milliseconds(1));
  report.server.reorder.Add(absl::Milliseconds(2));
  EXPECT_THAT(ReportText(report), AllOf(HasSubstr("  reorder    2.00 ms   2.00 ms\n"),
                                        HasSubstr("  network    1.00 ms   1.00 ms\n")));
}

TEST(ReportHtml, IsOnePageThatAsksForNothing) {
  LoadReport odd = FiveSeconds();
  odd.name = "<b>4</b> callers";
  odd.errors[absl::StatusCode::kUnavailable] = 3;
  odd.parts.push_back({.name = "other"});
  odd.server.network.Add(absl::Milliseconds(1));
  odd.server.reorder.Add(absl::Milliseconds(2));
  const std::string html = ToHtml({.title = "digits & <co>", .runs = {FiveSeconds(), odd}});
  EXPECT_THAT(html, AllOf(HasSubstr("digits &amp; &lt;co&gt;"), HasSubstr("&lt;b&gt;4&lt;/b&gt;"),
                          HasSubstr("Latency by percentile"), HasSubstr("<polyline"),
                          HasSubstr("UNAVAILABLE"), HasSubstr("Parts of the mix"),
                          HasSubstr("<th>queue<th>reorder<th>compute<th>encode<th>network"),
                          HasSubstr("<td><td>2.00 ms / 2.00 ms<td><td><td>1.00 ms / 1.00 ms")));
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

// The points of the first curve after `caption`.
std::vector<std::pair<double, double>> PointsAfter(const std::string& html, const char* caption) {
  std::vector<std::pair<double, double>> points;
  const size_t line = html.find("points=\"", html.find(caption)) + 8;
  const std::string text = html.substr(line, html.find('"', line) - line);
  for (absl::string_view point : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> both = absl::StrSplit(point, ',');
    points.emplace_back(std::stod(both.at(0)), std::stod(both.at(1)));
  }
  return points;
}

// Eleven seconds of 20 answers each are drawn as two points: a hundred answers have a p99.
TEST(ReportHtml, SecondsWithFewAnswersAreJoined) {
  LoadReport report = FiveSeconds();
  report.windows.clear();
  for (int i = 0; i < 11; ++i) {
    report.windows.push_back({.start_s = static_cast<double>(i), .answered = 20});
    report.windows.back().p50 = absl::Milliseconds(1);
    report.windows.back().p99 = absl::Milliseconds(i == 3 ? 40 : 2);
  }
  const std::string html = ToHtml({.title = "t", .runs = {report}});
  const auto rates = PointsAfter(html, "Answers per second, over time");
  ASSERT_EQ(rates.size(), 2);
  EXPECT_NEAR(rates[0].first - 62, (rates[1].first - 62) * 2.5 / 8, 0.2)
      << "of 0 to 5 and 5 to 11 s";
  EXPECT_EQ(rates[0].second, rates[1].second) << "20 answers per second in both";
  const auto p99 = PointsAfter(html, "p99 (solid) and p50 (dashed), over time");
  ASSERT_EQ(p99.size(), 2);
  EXPECT_LT(p99[0].second, p99[1].second) << "the larger latency stands higher";
}

TEST(ReportHtml, NothingAnsweredIsAPageToo) {
  EXPECT_THAT(ToHtml({.title = "t", .runs = {LoadReport()}}), HasSubstr("</html>"));
}

}  // namespace
}  // namespace tilewire::client
