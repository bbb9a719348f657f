// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/text_width.h"
#include "client/top/interval.h"
#include "client/top/text.h"
#include "nlohmann/json.hpp"

namespace tilewire::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Counts = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t kMs = 1'000'000, kSecond = 1000 * kMs;
constexpr int64_t kServerStart = 1'700'000'000 * kSecond;

v1::ServerStatusResponse StatusAt(int64_t second, int64_t start = kServerStart) {
  v1::ServerStatusResponse status;
  status.set_server_version("0.1.0");
  status.set_state("READY");
  status.set_at_ns(kServerStart + second * kSecond);
  status.set_uptime_ns(status.at_ns() - start);
  status.set_cores(4);
  return status;
}

v1::VersionStatus* AddVersion(const std::string& model, v1::ServerStatusResponse* status) {
  v1::ModelStatus* added = status->add_models();
  added->set_name(model);
  v1::VersionStatus* version = added->add_versions();
  version->set_version("7");
  version->set_state("READY");
  return version;
}

void SetDurations(const Counts& counts, v1::VersionStatus* version) {
  version->clear_durations();
  for (const auto& [up_to_ms, count] : counts) {
    v1::DurationCount* duration = version->add_durations();
    duration->set_up_to_ns(up_to_ms < 0 ? std::numeric_limits<int64_t>::max() : up_to_ms * kMs);
    duration->set_count(count);
  }
}

TEST(TopIntervalTest, RatesAreDifferencesByTheServersClock) {
  v1::ServerStatusResponse before = StatusAt(100), after = StatusAt(104);
  v1::VersionStatus* version = AddVersion("cats", &before);
  version->set_answered(1000);
  version->set_failed(10);
  version->set_refused(4);
  version->set_rows(8000);
  version->set_request_ns(50 * kSecond);
  version->set_queue_ns(5 * kSecond);
  version->set_core_ns(20 * kSecond);
  before.set_throttled_ns(kSecond);
  version = AddVersion("cats", &after);
  version->set_answered(1400);
  version->set_failed(30);
  version->set_refused(16);
  version->set_rows(9600);
  version->set_request_ns(58 * kSecond);
  version->set_queue_ns(7 * kSecond);
  version->set_core_ns(26 * kSecond);
  version->set_held_bytes(142'000'000);
  after.mutable_models(0)->set_waiting(3);
  after.set_throttled_ns(kSecond + 800 * kMs);
  after.set_cpu_wait_share(0.38);
  after.set_unnamed_failed(2);
  AddVersion("dogs", &after)->set_answered(4);  // since the first look

  const auto top = IntervalBetween(before, after);
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(top->length, absl::Seconds(4));
  EXPECT_DOUBLE_EQ(top->RequestsPerSecond(), 101);
  EXPECT_DOUBLE_EQ(top->Cores(), 1.5);
  EXPECT_DOUBLE_EQ(top->throttled_share, 0.05) << "of 16 seconds of cores";
  EXPECT_DOUBLE_EQ(top->cpu_wait_share.value_or(-1), 0.38);
  EXPECT_DOUBLE_EQ(top->unnamed_errors_per_s, 0.5);
  EXPECT_EQ(top->held_bytes, 142'000'000);
  ASSERT_EQ(top->models.size(), 2);
  EXPECT_EQ(top->models[0].waiting, 3);
  const VersionInterval& cats = top->models[0].versions[0];
  EXPECT_DOUBLE_EQ(cats.requests_per_s, 100);
  EXPECT_DOUBLE_EQ(cats.rows_per_s, 400);
  EXPECT_DOUBLE_EQ(cats.refused_per_s, 3);
  EXPECT_DOUBLE_EQ(cats.errors_per_s, 2) << "without those that were refused";
  EXPECT_DOUBLE_EQ(*cats.queue_share, 0.25);
  EXPECT_DOUBLE_EQ(cats.cores, 1.5);
  EXPECT_DOUBLE_EQ(top->models[1].versions[0].requests_per_s, 1);
}

TEST(TopIntervalTest, QuantilesAreUpperEndsOfTheDifferences) {
  const struct {
    const char* why;
    Counts before, after;
    double p50_ms, p99_ms;  // -1: none
  } kCases[] = {
      {"no requests at all", {}, {}, -1, -1},
      {"none in the interval", {{5, 9}}, {{5, 9}}, -1, -1},
      {"one", {}, {{5, 1}}, 5, 5},
      {"what was before does not count", {{900, 1000}}, {{5, 2}, {900, 1000}}, 5, 5},
      {"half of two is the first", {}, {{5, 1}, {20, 1}}, 5, 20},
      {"99 of 100", {}, {{5, 99}, {20, 1}}, 5, 5},
      {"98 of 100", {}, {{5, 98}, {20, 2}}, 5, 20},
      {"buckets that were new in between", {{5, 1}}, {{4, 3}, {5, 2}, {6, 1}}, 4, 6},
      {"longer than any bucket's end", {}, {{-1, 1}}, 100'000, 100'000},
  };
  for (const auto& c : kCases) {
    v1::ServerStatusResponse before = StatusAt(1), after = StatusAt(2);
    SetDurations(c.before, AddVersion("cats", &before));
    SetDurations(c.after, AddVersion("cats", &after));
    const auto top = IntervalBetween(before, after);
    ASSERT_TRUE(top.ok()) << c.why;
    const VersionInterval& version = top->models[0].versions[0];
    EXPECT_DOUBLE_EQ(version.p50_ms.value_or(-1), c.p50_ms) << c.why;
    EXPECT_DOUBLE_EQ(version.p99_ms.value_or(-1), c.p99_ms) << c.why;
  }
}

TEST(TopIntervalTest, AServerThatBeganAnewIsSeenFromItsStart) {
  v1::ServerStatusResponse before = StatusAt(100),
                           after = StatusAt(110, kServerStart + 105 * kSecond);
  AddVersion("cats", &before)->set_answered(1000);
  AddVersion("cats", &after)->set_answered(2000);
  const auto top = IntervalBetween(before, after);
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(top->length, absl::Seconds(5));
  EXPECT_DOUBLE_EQ(top->RequestsPerSecond(), 400);
  EXPECT_EQ(IntervalSinceStart(after).length, absl::Seconds(5));
}

TEST(TopIntervalTest, AVersionThatBeganAnewIsSeenFromNothing) {
  v1::ServerStatusResponse before = StatusAt(100), after = StatusAt(102);
  AddVersion("cats", &before)->set_answered(1000);
  AddVersion("cats", &after)->set_answered(10);
  EXPECT_DOUBLE_EQ(IntervalBetween(before, after)->RequestsPerSecond(), 5);
}

TEST(TopIntervalTest, TwoServersSideBySideAreNotOne) {
  const auto top = IntervalBetween(StatusAt(100), StatusAt(102, kServerStart + 50 * kSecond));
  EXPECT_EQ(top.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(IntervalBetween(StatusAt(100), StatusAt(102, kServerStart + 50 * kMs)).ok())
      << "two clocks are read, not at once";
}

TopInterval Busy() {
  TopInterval top = {.server_version = "0.1.0",
                     .state = "READY",
                     .at = absl::FromUnixSeconds(1'700'000'000),
                     .length = absl::Seconds(2),
                     .uptime = absl::Hours(76) + absl::Minutes(3),
                     .cores = 4,
                     .cores_busy = 3,
                     .throttled_share = 0.012,
                     .work_bytes = 210'000'000,
                     .work_limit_bytes = 1'020'000'000,
                     .held_bytes = 713'000'000,
                     .connections = 14};
  top.models = {
      {.name = "bad",
       .versions = {{.version = "1", .state = "UNAVAILABLE", .reason = "node 'x'\n: no Foo"}}},
      {.name = "cats",
       .waiting = 3,
       .running = 1,
       .versions = {{.version = "6", .state = "READY"},
                    {.version = "7",
                     .state = "READY",
                     .requests_per_s = 90.1,
                     .rows_per_s = 180.2,
                     .errors_per_s = 0.5,
                     .p50_ms = 10.9,
                     .p99_ms = 31,
                     .queue_share = 0.124,
                     .cores = 1.92}}},
      {.name = "v\x1b[2Jgg",
       .running = 1,
       .versions = {{.version = "12",
                     .state = "UNLOADING",
                     .requests_per_s = 1234.5,
                     .rows_per_s = 1234.5,
                     .refused_per_s = 12,
                     .p50_ms = 0.0805,
                     .p99_ms = 1904,
                     .queue_share = 1,
                     .cores = 2}}}};
  return top;
}

TEST(TopTextTest, IsTheServerAndALineForEachVersion) {
  EXPECT_EQ(TopText(Busy(), "127.0.0.1:8001", {}),
            "READY  tilewire 0.1.0 at 127.0.0.1:8001  up 3 d 4 h  14 connections\n"
            "cores 3.92 of 4 busy  throttled 1.2 %  memory 210 MB of 1.02 GB, models 713 MB\n"
            "1325 requests/s in the last 2.0 s, 3 waiting, 2 running\n"
            "\n"
            "model    version  req/s rows/s p50 ms p99 ms queued cores wait run err/s refused\n"
            "v?[2Jgg       12   1234   1234 0.0805   1904  100 %  2.00    0   1     -      12\n"
            "cats           7   90.1  180.2   10.9     31   12 %  1.92    3   1   0.5       -\n"
            "bad            1  UNAVAILABLE: node 'x'?: no Foo\n"
            "cats           6      0      0      -      -      -  0.00              -       -\n");
}

std::vector<std::string> LinesOf(const TopInterval& top, const TopSize& size) {
  std::vector<std::string> lines = absl::StrSplit(TopText(top, "127.0.0.1:8001", size), '\n');
  EXPECT_EQ(lines.back(), "") << "each line ends with a line feed";
  lines.pop_back();
  return lines;
}

TEST(TopTextTest, ANarrowTerminalGetsTheColumnsThatMatterMost) {
  const struct {
    int columns;
    const char* heading;
  } kCases[] = {
      {100, "model    version  req/s rows/s p50 ms p99 ms queued cores wait run err/s refused"},
      {80, "model    version  req/s rows/s p50 ms p99 ms queued cores wait run err/s refused"},
      {79, "model    version  req/s p50 ms p99 ms queued cores wait run err/s refused"},
      {72, "model    version  req/s p50 ms p99 ms queued cores wait run err/s"},
      {61, "model    version  req/s p50 ms p99 ms queued cores wait err/s"},
      {60, "model    version  req/s p50 ms p99 ms queued cores err/s"},
      {50, "model    version  req/s p50 ms p99 ms queued cores"},
      {49, "model    version  req/s p50 ms p99 ms cores"},
      {40, "model    version  req/s p50 ms p99 ms"},
      {36, "model    version  req/s p99 ms"},
      {29, "model    version  req/s"},
      {22, "model    version"},
      {15, "model   "},
      {5, "model"},
      {1, "~"},
  };
  for (const auto& c : kCases) {
    const std::vector<std::string> lines = LinesOf(Busy(), {.columns = c.columns});
    EXPECT_EQ(lines[4], c.heading) << c.columns;
    for (const std::string& line : lines) EXPECT_LE(line.size(), c.columns) << line;
  }
}

TEST(TopTextTest, ColumnsGoBeforeNamesAreCut) {
  TopInterval top = Busy();
  top.models = {{.name = "resnet50_int8", .versions = {{.version = "1", .state = "READY"}}},
                {.name = "resnet50_v1", .versions = {{.version = "2", .state = "READY"}}}};
  const struct {
    const char* longest;  // in the place of resnet50_int8
    int columns;
    const char *heading, *line;
  } kCases[] = {
      {"resnet50_int8", 85,
       "model         version  req/s rows/s p50 ms p99 ms queued cores wait run err/s refused",
       "resnet50_int8       1      0      0      -      -      -  0.00    0   0     -       -"},
      {"resnet50_int8", 80,
       "model         version  req/s p50 ms p99 ms queued cores wait run err/s refused",
       "resnet50_int8       1      0      -      -      -  0.00    0   0     -       -"},
      {"resnet50_int8", 40, "model         version  req/s p99 ms",
       "resnet50_int8       1      0      -"},
      {"resnet50_int8", 28, "model         version  req/s", "resnet50_int8       1      0"},
      {"resnet50_int8", 27, "model        version  req/s", "resne~0_int8       1      0"},
      {"resnet50_int8", 23, "model    version  req/s", "res~int8       1      0"},
      {"resnet50_int8", 22, "model         version", "resnet50_int8       1"},
      {"resnet50_int8", 16, "model    version", "res~int8       1"},
      {"resnet50_int8", 12, "model       ", "resne~0_int8"},
      {"a_model_of_thirty_two_characters", 80,
       "model                       version  req/s p50 ms p99 ms queued cores wait err/s",
       "a_model_of_th~wo_characters       1      0      -      -      -  0.00    0     -"},
      {"\u6A21\u578B\u6A21\u578B\u6A21\u578B_1", 36, "model          version  req/s p99 ms",
       "\u6A21\u578B\u6A21\u578B\u6A21\u578B_1       1      0      -"},
  };
  for (const auto& c : kCases) {
    top.models[0].name = c.longest;
    const std::vector<std::string> lines = LinesOf(top, {.columns = c.columns});
    EXPECT_EQ(lines[4], c.heading) << c.columns;
    EXPECT_EQ(lines[5], c.line) << c.columns;
  }
}

TEST(TopTextTest, WhatIsNotReadyIsNotTakenForARate) {
  const struct {
    int columns;
    const char* line;
  } kCases[] = {{40, "bad            1  UNAVAILABLE: node 'x'~"},
                {29, "bad            1  UNAVAILABL~"},
                {15, "bad       UNAV~"}};
  for (const auto& [columns, line] : kCases)
    EXPECT_THAT(LinesOf(Busy(), {.columns = columns}), Contains(line)) << columns;
}

TEST(TopTextTest, SaysWhenOthersTakeTheCpu) {
  TopInterval top = Busy();
  top.cpu_wait_share = 0.05;
  EXPECT_THAT(LinesOf(top, {})[1], Not(HasSubstr("waited"))) << "as any machine shows";
  top.cpu_wait_share = 0.384;
  EXPECT_THAT(LinesOf(top, {})[1], HasSubstr("throttled 1.2 %  waited for a CPU 38 %  memory"));
  EXPECT_THAT(TopJson(top), HasSubstr("\"cpu_wait_share\":0.384"));
  top.cpu_wait_share.reset();
  EXPECT_THAT(TopJson(top), HasSubstr("\"cpu_wait_share\":null"));
}

TEST(TopTextTest, TheServersLinesLoseWholeParts) {
  const struct {
    int columns;
    std::vector<std::string> lines;
  } kCases[] = {
      {60,
       {"READY  tilewire 0.1.0 at 127.0.0.1:8001  up 3 d 4 h",
        "cores 3.92 of 4 busy  throttled 1.2 %, models 713 MB",
        "1325 requests/s in the last 2.0 s, 3 waiting, 2 running"}},
      {40,
       {"READY  tilewire 0.1.0 at 127.0.0.1:8001", "cores 3.92 of 4 busy  throttled 1.2 %",
        "1325 requests/s in the last 2.0 s"}},
      {34,
       {"READY  tilewire 0.1.0  up 3 d 4 h", "cores 3.92 of 4 busy",
        "1325 requests/s in the last 2.0 s"}},
      {10, {"READY", "cores 3.9~", "1325 requ~"}},
  };
  for (const auto& c : kCases) {
    std::vector<std::string> lines = LinesOf(Busy(), {.columns = c.columns});
    lines.resize(3);
    EXPECT_EQ(lines, c.lines) << c.columns;
  }
}

TEST(TopTextTest, WideCharactersTakeTwoCells) {
  TopInterval top = Busy();
  top.models[1].name = "\u732B\u732B\u732B\u732B\u732B";
  top.models[0].versions[0].reason = std::string(60, 'x') + "\u732B\u732B\u732B";
  for (int columns = 1; columns < 90; ++columns)
    for (const std::string& line : LinesOf(top, {.columns = columns}))
      EXPECT_LE(TextWidth(line), columns) << line;
  EXPECT_THAT(LinesOf(top, {.columns = 40})[6],
              StartsWith("\u732B\u732B\u732B\u732B\u732B       7 "));
}

TEST(TopTextTest, AShortTerminalCountsTheRest) {
  const auto lines = [](int lines) { return LinesOf(Busy(), {.lines = lines}); };
  EXPECT_THAT(lines(9).back(), StartsWith("cats")) << "all fit";
  EXPECT_EQ(lines(8).back(), "2 more versions");
  EXPECT_THAT(lines(8)[6], StartsWith("cats")) << "the busiest are shown";
  EXPECT_EQ(lines(6).back(), "3 more versions");
  EXPECT_THAT(lines(4), ElementsAre(StartsWith("READY"), StartsWith("model"), StartsWith("v?[2J"),
                                    "3 more versions"));
  EXPECT_THAT(lines(2), ElementsAre(StartsWith("READY"), "4 versions"));
  EXPECT_THAT(lines(1), ElementsAre(StartsWith("READY")));
  for (int most = 1; most < 12; ++most) {
    EXPECT_LE(lines(most).size(), most);
    TopInterval empty = Busy();
    empty.models.clear();
    EXPECT_LE(LinesOf(empty, {.lines = most}).size(), most);
  }
}

TEST(TopTextTest, WhatIsToldWithoutAnAnswerFitsTheTerminal) {
  EXPECT_EQ(NoAnswerText("not\x1b there", "a:1", 0.5, {}),
            "no answer from a:1; asked again every 0.5 s, Ctrl-C ends\nnot? there\n");
  EXPECT_EQ(NoAnswerText("0123456789", "a:1", 2, {.columns = 20, .lines = 2}),
            "no answer from a:1\n0123456789\n");
  EXPECT_EQ(NoAnswerText("0123456789012345678901234567890123456789", "a:1", 2,
                         {.columns = 18, .lines = 3}),
            "no answer from a:1\n012345678901234567\n890123456789012345\n");
  EXPECT_EQ(NoAnswerText("not there", "a:1", 2, {.lines = 1}),
            "no answer from a:1; asked again every 2 s, Ctrl-C ends\n");
}

TEST(TopTextTest, TellsErrorsThatBelongToNoModelAndAServerWithoutAny) {
  TopInterval top = Busy();
  top.unnamed_errors_per_s = 2.5;
  EXPECT_THAT(TopText(top, "", {}),
              HasSubstr("2 running, 2.5 errors/s that named no version here\n"));
  EXPECT_THAT(TopText(Busy(), "", {}), Not(HasSubstr("named no model")));
  top.models.clear();
  EXPECT_THAT(TopText(top, "", {}), HasSubstr("\nthe server has no models\n"));
}

TEST(TopTextTest, JsonIsALineWithAllOfIt) {
  TopInterval top = Busy();
  top.models[0].name = "b\"ad\n";
  const std::string text = TopJson(top);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["state"], "READY");
  EXPECT_EQ(json["at_ms"], 1'700'000'000'000);
  EXPECT_EQ(json["interval_s"], 2);
  EXPECT_EQ(json["cores"], 4);
  EXPECT_DOUBLE_EQ(json["cores_used"].get<double>(), 3.92);
  EXPECT_EQ(json["connections"], 14);
  EXPECT_EQ(json["models"][0]["model"], "b\"ad\n");
  EXPECT_EQ(json["models"][0]["versions"][0]["reason"], "node 'x'\n: no Foo");
  EXPECT_TRUE(json["models"][0]["versions"][0]["p50_ms"].is_null());
  EXPECT_EQ(json["models"][1]["waiting"], 3);
  EXPECT_EQ(json["models"][1]["versions"][1]["p99_ms"], 31);
  EXPECT_EQ(json["models"][1]["versions"][1]["queue_share"], 0.124);
}

}  // namespace
}  // namespace tilewire::client
