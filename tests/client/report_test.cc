// SPDX-License-Identifier: Apache-2.0
//
// Reports of loads: files, merging, judgements.
#include "client/load/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "client/load/objective.h"
#include "client/load/record.h"
#include "client/load/report/report_text.h"
#include "client/load/report/stability.h"
#include "tests/client/load_reports.h"
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

TEST(LoadRecord, JsonLosesNothing) {
  LoadRecord record{.title = "digits \"<&>\" at 1:2",
                    .origins = {{.load = "1f",
                                 .server = "1:2 (double 1)",
                                 .client = "tilewire 1",
                                 .host = "here, 2 cores",
                                 .seed = 7,
                                 .began = absl::FromUnixSeconds(999)},
                                {.load = "2e"}},
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
  odd.changes = true;
  odd.ended_because = "it was told to stop";
  odd.windows[2] = {.start_s = 2,
                    .answered = 2,
                    .p50 = absl::Milliseconds(3),
                    .p99 = absl::Milliseconds(4),
                    .largest = absl::Milliseconds(4),
                    .latencies = {absl::Milliseconds(4), absl::Milliseconds(3)}};
  odd.think = absl::Milliseconds(20);
  odd.server.compute.Add(absl::Milliseconds(3));
  const std::string json = ToJson(record);
  const auto same = FromJson(json);
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(ToJson(*same), json);
  EXPECT_EQ(same->title, record.title);
  EXPECT_EQ(same->fails, 95);
  ASSERT_EQ(same->origins.size(), 2);
  EXPECT_EQ(same->origins[0].server, "1:2 (double 1)");
  EXPECT_EQ(same->origins[1].load, "2e");
  EXPECT_EQ(same->runs[1].ended_because, "it was told to stop");
  EXPECT_THAT(same->runs[1].windows[2].latencies,
              ElementsAre(absl::Milliseconds(4), absl::Milliseconds(3)));
  EXPECT_EQ(same->runs[1].think, absl::Milliseconds(20));
  ASSERT_EQ(same->runs.size(), 2);
  EXPECT_EQ(same->runs[0].latencies.Percentile(99), record.runs[0].latencies.Percentile(99));
  EXPECT_THAT(same->runs[1].errors, ElementsAre(Pair(absl::StatusCode::kUnavailable, 3)));
  EXPECT_EQ(same->runs[1].server.compute.Mean(), absl::Milliseconds(3));
  EXPECT_EQ(same->runs[1].started, absl::FromUnixSeconds(1000));
}

TEST(LoadRecord, OtherFilesAreRefused) {
  struct Case {
    const char* text;
    const char* why;
  };
  constexpr Case kCases[] = {
      {"", "the file is empty"},
      {"{", "not JSON, or cut short, at byte 2"},
      {"[]", "'tilewire_load' is missing"},
      {"{}", "'tilewire_load' is missing, which `tilewire load --json=FILE` writes"},
      {R"({"tilewire_load": 2})", "'tilewire_load' is 2, and this tool reads version 1"},
      {R"({"tilewire_load": "1"})", "'tilewire_load' is a string, not a number"},
      {R"({"tilewire_load": 1})", "'title' is missing"},
      {R"({"tilewire_load": 1, "title": 3})", "'title' is a number, not a string"},
      {R"({"tilewire_load": 1, "title": "t", "bound": "", "holds_per_s": 0, "fails_per_s": 0,
           "runs": {}})",
       "'runs' is an object, not an array"},
      {R"({"tilewire_load": 1, "title": "t", "bound": "", "holds_per_s": 0, "fails_per_s": 0,
           "runs": [{"name": "n"}]})",
       "'runs[0].offered_per_s' is missing"}};
  for (const Case& c : kCases) {
    EXPECT_THAT(FromJson(c.text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.why)))
        << c.text;
  }
}

TEST(LoadRecord, CsvHasAsManyCellsInEachRow) {
  LoadReport report = FiveSeconds();
  for (int i = 0; i < 2; ++i) report.server.reorder.Add(absl::Milliseconds(2));
  const std::string csv = ToCsv({.runs = {report}});
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 1 + 1 + 1 + 5);
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','))
        << line;
  }
  EXPECT_THAT(lines[1], HasSubstr("\"open loop of 100/s (poisson)\",0,5,500,100,0,"));
  EXPECT_THAT(lines[1], HasSubstr(",10,,10,")) << "500 answers have no p99.9";
  EXPECT_THAT(lines[3], HasSubstr(",5,"));
  EXPECT_THAT(lines[0], EndsWith("queue_p50_ms,queue_p99_ms,reorder_p50_ms,reorder_p99_ms,compute_"
                                 "p50_ms,compute_p99_ms,encode_p50_ms,encode_p99_ms,network_p50_ms,"
                                 "network_p99_ms"));
  EXPECT_THAT(lines[1], EndsWith(",,,2,,,,,,,")) << "two answers have no p99";
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
  const LoadRecord one{.origins = {{.load = NewLoadName()}}, .runs = {FiveSeconds()}};
  const LoadRecord other{.origins = {{.load = NewLoadName()}}, .runs = {FiveSeconds()}};
  const auto both = MergeRecords({one, other});
  ASSERT_THAT(both, IsOk());
  ASSERT_EQ(both->origins.size(), 2);
  EXPECT_EQ(both->origins[1].load, other.origins[0].load);
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

// A server that takes 2.5 s for each of a caller's requests is slow, and steady.
TEST(Stability, SecondsWithoutAnswersOfASlowServerAreNoReason) {
  LoadReport report;
  report.elapsed = absl::Seconds(12);
  for (int second = 0; second < 12; ++second) {
    const bool has_answer = second == 2 || second == 5 || second == 7 || second == 10;
    report.windows.push_back({.start_s = double(second), .answered = has_answer});
    if (!has_answer) continue;
    report.windows.back().p50 = absl::Seconds(2.5);
    report.latencies.Add(absl::Seconds(2.5));
    ++report.answered;
  }
  EXPECT_THAT(WhyUnstable(report), IsEmpty());
}

TEST(Stability, AServerThatHangsIsNamed) {
  LoadReport report = FiveSeconds();
  for (int second = 3; second < 5; ++second)
    report.windows[second] = {.start_s = double(second), .waiting = 2};
  EXPECT_THAT(WhyUnstable(report), ElementsAre("no answers in seconds 4 to 5"));
  report.windows[2].answered = 0;
  EXPECT_THAT(WhyUnstable(report), ElementsAre("no answers in seconds 3 to 5"));
  report.windows[2] = report.windows[3] = report.windows[1];
  EXPECT_THAT(WhyUnstable(report), ElementsAre("no answers in second 5"));
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
      {"p99<20ms", true},   {"p50<=1ms", false},       {"p99.5<0.0101s", true},
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

TEST(Objective, TooFewAnswersMeetNoPercentile) {
  LoadReport report;
  report.answered = 99;
  for (int i = 0; i < 99; ++i) report.latencies.Add(absl::Milliseconds(1));
  const auto objective = Objective::Parse("p99<20ms,p99.9<1s,p50<20ms,max<20ms,p100<20ms");
  ASSERT_THAT(objective, IsOk());
  EXPECT_FALSE(objective->IsMet(report));
  EXPECT_EQ(VerdictText(objective->Judge(report)),
            "NOT MET     p99<20ms: unknown, p99 needs 100 answers and there were 99\n"
            "NOT MET     p99.9<1s: unknown, p99.9 needs 1000 answers and there were 99\n"
            "met         p50<20ms: 1.00 ms\n"
            "met         max<20ms: 1.00 ms\n"
            "met         p100<20ms: 1.00 ms\n");
  report.latencies.Add(absl::Milliseconds(1));
  EXPECT_TRUE(Objective::Parse("p99<20ms")->IsMet(report));
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
  for (int i = 0; i < 100; ++i) report.server.network.Add(absl::Milliseconds(1));
  for (int i = 0; i < 2; ++i) report.server.reorder.Add(absl::Milliseconds(2));
  EXPECT_THAT(ReportText(report), AllOf(HasSubstr("  reorder    2.00 ms         -\n"),
                                        HasSubstr("  network    1.00 ms   1.00 ms\n")));
}

TEST(ReportText, SaysHowManyAnswersAreBeyondAPercentile) {
  LoadReport report = FiveSeconds();
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("measured    5.0 s from 1970-01-01 00:16:40 UTC, on 4 connections\n"),
                    HasSubstr("p99 10.0 ms, max 10.0 ms\n"),
                    HasSubstr("(of 500 answers, 50 beyond p90, 5 beyond p99; p99.9 needs 1000)")));
  report.latencies = {};
  for (int i = 0; i < 5; ++i) report.latencies.Add(absl::Milliseconds(1));
  report.answered = 5;
  EXPECT_THAT(ReportText(report), HasSubstr("latency     p50 1.00 ms, max 1.00 ms\n"
                                            "            (of 5 answers; p90 needs 10)\n"));
}

TEST(ReportText, SaysWhyALoadWasEndedEarly) {
  LoadReport report = FiveSeconds();
  report.ended_because = "its first 100 requests all failed";
  EXPECT_THAT(ReportText(report),
              HasSubstr("the load was ended early: its first 100 requests all failed\n"));
}

}  // namespace
}  // namespace tilewire::client
