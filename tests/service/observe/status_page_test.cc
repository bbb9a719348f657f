// SPDX-License-Identifier: Apache-2.0
//
// The status page and its JSON: complete without a script, and nothing of what files and clients
// say is taken for markup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "service/observe/status.h"

namespace tilewire::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every text of the status is this one.
Status StatusOf(const std::string& text) {
  Status status;
  status.server = status.build = status.host = status.isa = status.precision = text;
  status.state = text;
  status.now = absl::FromUnixSeconds(1'800'000'000);
  status.uptime = absl::Hours(76);
  status.points = {{1'799'999'990, 100, 1, 10.5, 31.0}};
  status.models = {{.name = text, .version = 7, .state = text, .remark = text, .requests = 12}};
  status.slowest = {{.id = text, .model = text, .code = text, .words = text, .total_ms = 412}};
  status.layers = {{.model = text, .runs = 5, .steps = 2, .costliest = {{text, 0.25}}}};
  status.lines = {{absl::FromUnixSeconds(1), text, text}};
  status.flags = {{text, text, true}};
  status.threads_of_process = {{text, '<', 1.5}};
  return status;
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(StatusPageTest, EscapesWhatFilesAndClientsSay) {
  const std::string plain = StatusPage(StatusOf("text"), "n0nce");
  for (const char* hostile : {"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>",
                              "' onmouseover='alert(1)", "</table></main><h1>", "{{nonce}}",
                              "{{main}}", "&lt;", "\xff\xfe\x80", "a\nb\tc\x1b[31m"}) {
    const std::string page = StatusPage(StatusOf(hostile), "n0nce");
    for (const char* mark :
         {"<script", "<img", "<h1>", "</table>", "</main>", "onerror=", "\x1b"}) {
      if (CountOf(hostile, mark) > 0 && mark[0] != '<' && mark[0] != '\x1b') continue;  // as text
      EXPECT_EQ(CountOf(page, mark), CountOf(plain, mark)) << mark << " of " << hostile;
    }
    EXPECT_EQ(CountOf(page, "<"), CountOf(plain, "<")) << hostile;
    EXPECT_EQ(CountOf(page, "\""), CountOf(plain, "\"")) << hostile;
    EXPECT_EQ(CountOf(page, "'"), CountOf(plain, "'")) << hostile;
    EXPECT_EQ(CountOf(page, "n0nce"), CountOf(plain, "n0nce")) << hostile;
    const auto json = nlohmann::json::parse(StatusJson(StatusOf(hostile)));
    EXPECT_EQ(json["models"].size(), 1) << hostile;
  }
}

TEST(StatusPageTest, HasItsValuesWithoutAScript) {
  Status status = StatusOf("cats");
  status.state = status.models[0].state = "READY";
  status.models[0].recent = {.requests = 60, .per_second = 90.1, .p50_ms = 10.9, .p99_ms = 190};
  const std::string page = StatusPage(status, "n0nce");
  EXPECT_THAT(page, AllOf(HasSubstr("up 3 d 4 h"), HasSubstr(">90.1<"), HasSubstr(">10.9 ms<"),
                          HasSubstr(">190 ms<"), HasSubstr(">412 ms<"), HasSubstr("cats 25.0 %"),
                          HasSubstr("<polyline"), HasSubstr("READY</span>"),
                          HasSubstr("<noscript><meta http-equiv=\"refresh\"")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(StatusPageTest, LoadsNothingFromElsewhereAndAllowsNoOtherScript) {
  const std::string page = StatusPage(StatusOf("text"), "n0nce");
  for (const char* source : {"http://", "https://", "src=", "@import", "url(", "style=\""})
    EXPECT_THAT(page, Not(HasSubstr(source)));
  EXPECT_EQ(CountOf(page, "<script"), CountOf(page, "<script nonce=\"n0nce\">"));
  EXPECT_EQ(CountOf(page, "<style"), CountOf(page, "<style nonce=\"n0nce\">"));
  EXPECT_THAT(StatusPolicy("n0nce"),
              AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'nonce-n0nce'"),
                    HasSubstr("style-src 'nonce-n0nce'"), HasSubstr("connect-src 'self'"),
                    Not(HasSubstr("unsafe"))));
}

// The time that the thread has computed for: a machine that stalls adds nothing.
absl::Duration TimeOfThread() {
  timespec time = {};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return absl::DurationFromTimespec(time);
}

TEST(StatusPageTest, TwoHundredModelsTakeAMoment) {
  Status status = StatusOf("text");
  const Status::Model model = status.models[0];
  for (int i = 0; i < 200; ++i) {
    status.models.push_back(model);
    status.models.back().name = absl::StrCat("model_", i);
  }
  const absl::Duration start = TimeOfThread();
  const std::string page = StatusPage(status, "n0nce");
  const absl::Duration taken = TimeOfThread() - start;
  EXPECT_THAT(page, HasSubstr("model_199"));
  EXPECT_LT(taken, absl::Seconds(1)) << "5 ms where nothing else runs";
}

TEST(StatusPageTest, JsonHasTheValuesUnderKeysThatStay) {
  Status status = StatusOf("cats");
  status.models[0].recent = {.requests = 60, .per_second = 90.5};
  const auto json = nlohmann::json::parse(StatusJson(status));
  EXPECT_EQ(json["state"], "cats");
  EXPECT_EQ(json["uptime_s"], 76 * 3600);
  EXPECT_EQ(json["models"][0]["name"], "cats");
  EXPECT_EQ(json["models"][0]["version"], 7);
  EXPECT_EQ(json["models"][0]["last_minute"]["per_second"], 90.5);
  EXPECT_EQ(json["slowest"][0]["total_ms"], 412);
  EXPECT_EQ(json["layers"][0]["costliest"][0]["share"], 0.25);
  EXPECT_EQ(json["seconds"][0]["p99_ms"], 31.0);
  EXPECT_EQ(json["flags"][0]["changed"], true);
  for (const char* key :
       {"server", "build", "host", "now_ms", "isa", "precision", "threads", "waiting", "running",
        "throttled_share", "cpu_wait_share", "cpu_pressure", "connections", "memory", "lost_lines",
        "missed_records", "lines", "threads_of_process"})
    EXPECT_TRUE(json.contains(key)) << key;
}

TEST(StatusPageTest, ShowsThatOthersTookTheCpuWhereThatIsKnown) {
  const char* const tile = "of the last minute compute threads waited for a CPU";
  Status status = StatusOf("cats");
  EXPECT_THAT(StatusPage(status, "n"), Not(HasSubstr(tile)));
  EXPECT_THAT(StatusJson(status), HasSubstr("\"cpu_wait_share\":null"));
  status.cpu_wait_share = 0.38;
  EXPECT_THAT(StatusPage(status, "n"), AllOf(HasSubstr(tile), HasSubstr("<b>38.0 %</b>")));
  EXPECT_THAT(StatusJson(status), HasSubstr("\"cpu_wait_share\":0.38"));
}

TEST(StatusPageTest, TheProcessHasThreads) {
  const std::vector<Status::Thread> threads = ReadThreads();
  ASSERT_FALSE(threads.empty());
  EXPECT_FALSE(threads[0].name.empty());
  EXPECT_THAT(std::string("RSDTtXxKWPI"), HasSubstr(std::string(1, threads[0].state)));
}

}  // namespace
}  // namespace tilewire::service
