// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/service/trace/traced_requests.h"

namespace tilewire::service {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::Pair;

json Parsed(const std::string& elements) { return json::parse(absl::StrCat("[", elements, "]")); }

std::vector<std::string> NamesIn(const json& events) {
  std::vector<std::string> names;
  for (const json& event : events) names.push_back(event["name"]);
  return names;
}

TEST(TraceTextTest, SpansFollowEachOther) {
  const Trace trace = testing::TraceOf(testing::RequestAt(10));
  EXPECT_EQ(trace.request().start_ns, testing::kBegin + 10'000);
  EXPECT_EQ(trace.request().end_ns, testing::kBegin + 67'000);
  ASSERT_EQ(trace.spans.size(), 7u);
  for (size_t i = 2; i < trace.spans.size(); ++i)
    EXPECT_EQ(trace.spans[i].start_ns, trace.spans[i - 1].end_ns);
  EXPECT_EQ(trace.spans[1].start_ns, trace.request().start_ns);
  EXPECT_EQ(trace.spans.back().end_ns, trace.request().end_ns);
  EXPECT_NE(trace.id, TraceId());
  EXPECT_EQ(trace.parent_id, SpanId());
}

TEST(TraceTextTest, TheFiveLongestStepsArePartsOfTheRun) {
  const Trace trace = testing::TraceOf(testing::WithSteps(testing::RequestAt(10)));
  ASSERT_EQ(trace.spans.size(), 7u + 5u);
  const TraceSpan& run = trace.spans[4];
  EXPECT_EQ(run.name, "run");
  std::vector<std::string> names;
  for (size_t i = 7; i < trace.spans.size(); ++i) {
    const TraceSpan& step = trace.spans[i];
    names.push_back(step.name);
    EXPECT_EQ(step.parent_id, run.id);
    EXPECT_GE(step.start_ns, run.start_ns);
    EXPECT_LE(step.end_ns, run.end_ns);
    const int64_t before_ns = i > 7 ? trace.spans[i - 1].start_ns : run.start_ns;
    EXPECT_GE(step.start_ns, before_ns) << "in the order in which they ran";
  }
  EXPECT_THAT(names, ElementsAre("conv0", "conv2", "conv4", "a\"}],\n<b>\\\x01?? b", "conv6"));
  EXPECT_EQ(trace.spans[8].start_ns - run.start_ns, 2000);
  EXPECT_EQ(trace.spans[8].end_ns - trace.spans[8].start_ns, 5000);
  const std::string text = TraceText(TraceForm::kChrome, testing::kBegin).Of(trace);
  EXPECT_EQ(Parsed(text).size(), 12u) << text;
  TracedRequest refused = testing::WithSteps(testing::RequestAt(0));
  refused.record.run_ns = 0;
  EXPECT_EQ(testing::TraceOf(refused).spans.size(), 6u) << "without a run there are no steps";
}

TEST(TraceTextTest, AStageThatWasNotReachedIsNoSpan) {
  TracedRequest refused = testing::RequestAt(0);
  refused.record.plan_ns = refused.record.run_ns = refused.record.encode_ns = 0;
  refused.record.write_ns = 0;
  EXPECT_EQ(testing::TraceOf(refused).spans.size(), 3u);
  const json stamps =
      Parsed(TraceText(TraceForm::kTriton, 0).Of(testing::TraceOf(refused)))[1]["timestamps"];
  EXPECT_THAT(NamesIn(stamps),
              ElementsAre("GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "REQUEST_START",
                          "QUEUE_START", "REQUEST_END", "GRPC_SEND_START", "GRPC_SEND_END"));
}

TEST(TraceTextTest, ChromeHasAnEventPerSpanInMicroseconds) {
  TraceText text(TraceForm::kChrome, testing::kBegin);
  const json events =
      Parsed(text.Of(testing::TraceOf(testing::AsPart(testing::RequestAt(10, "a81f")))));
  EXPECT_THAT(NamesIn(events),
              ElementsAre("request", "decode", "queue", "plan", "run", "encode", "write"));
  const json& request = events[0];
  EXPECT_EQ(request["ph"], "X");
  EXPECT_EQ(request["ts"], 10.0);
  EXPECT_EQ(request["dur"], 57.0);
  EXPECT_EQ(events[4]["ts"], 16.0);
  EXPECT_EQ(events[4]["dur"], 40.0);
  const json& arguments = request["args"];
  EXPECT_EQ(arguments["model"], "cats");
  EXPECT_EQ(arguments["version"], 3);
  EXPECT_EQ(arguments["id"], "a81f");
  EXPECT_EQ(arguments["rows"], 3);
  EXPECT_EQ(arguments["code"], "OK");
  EXPECT_EQ(arguments["trace_id"], "0102030405060708090a0b0c0d0e0f10");
  EXPECT_EQ(arguments["parent_id"], "1112131415161718");
  EXPECT_EQ(arguments["at"], "2023-11-14T22:13:20.000010Z");
}

// The first two overlap; the third begins when the first has ended.
TEST(TraceTextTest, ChromeShowsWhatOverlapsInRowsOfItsOwn) {
  TraceText text(TraceForm::kChrome, testing::kBegin);
  std::vector<int> rows;
  for (const int at : {0, 30, 57, 90}) {
    const json events = Parsed(text.Of(testing::TraceOf(testing::RequestAt(at))));
    for (const json& event : events) EXPECT_EQ(event["tid"], events[0]["tid"]);
    rows.push_back(events[0]["tid"]);
  }
  EXPECT_THAT(rows, ElementsAre(1, 2, 1, 2));
}

// "process 0", "thread 2": what the events of metadata after some traces name.
std::vector<std::string> Named(TraceText* text, std::vector<int> at_us) {
  for (const int at : at_us) text->Of(testing::TraceOf(testing::RequestAt(at)));
  const std::string names = text->TakeNames();
  std::vector<std::string> named;
  for (const json& event : json::parse(absl::StrCat("[0", names, "]"))) {
    if (!event.is_object()) continue;
    EXPECT_EQ(event["ph"], "M");
    named.push_back(absl::StrCat(event["name"].get<std::string>(), " ", event["tid"].get<int>(),
                                 " ", event["args"]["name"].get<std::string>()));
  }
  return named;
}

TEST(TraceTextTest, ChromeNamesTheProcessAndEachRowOnceAFile) {
  TraceText text(TraceForm::kChrome, testing::kBegin);
  EXPECT_THAT(Named(&text, {}), ElementsAre());
  EXPECT_THAT(Named(&text, {0}),
              ElementsAre("process_name 0 tilewire-server", "thread_name 1 requests, row 1"));
  EXPECT_THAT(Named(&text, {30}), ElementsAre("thread_name 2 requests, row 2"));
  EXPECT_THAT(Named(&text, {90}), ElementsAre());
  text.BeginFile();
  EXPECT_THAT(Named(&text, {200}),
              ElementsAre("process_name 0 tilewire-server", "thread_name 1 requests, row 1",
                          "thread_name 2 requests, row 2"));
  TraceText triton(TraceForm::kTriton, testing::kBegin);
  EXPECT_THAT(Named(&triton, {0}), ElementsAre());
}

TEST(TraceTextTest, TritonHasTimestampsUnderTheNumberOfTheRequest) {
  const json elements =
      Parsed(TraceText(TraceForm::kTriton, 0)
                 .Of(testing::TraceOf(testing::AsPart(testing::RequestAt(0, "q")))));
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_EQ(elements[0]["model_name"], "cats");
  EXPECT_EQ(elements[0]["model_version"], 3);
  EXPECT_EQ(elements[0]["request_id"], "q");
  EXPECT_EQ(elements[0]["trace_id"], "0102030405060708090a0b0c0d0e0f10");
  EXPECT_EQ(elements[0]["id"], elements[1]["id"]);
  std::vector<std::pair<std::string, int64_t>> stamps;
  for (const json& stamp : elements[1]["timestamps"])
    stamps.emplace_back(stamp["name"], stamp["ns"].get<int64_t>() - testing::kBegin);
  EXPECT_THAT(stamps, ElementsAre(Pair("GRPC_WAITREAD_START", 0), Pair("GRPC_WAITREAD_END", 0),
                                  Pair("REQUEST_START", 0), Pair("QUEUE_START", 1000),
                                  Pair("COMPUTE_START", 3000), Pair("COMPUTE_INPUT_END", 6000),
                                  Pair("COMPUTE_OUTPUT_START", 46'000), Pair("COMPUTE_END", 51'000),
                                  Pair("REQUEST_END", 51'000), Pair("GRPC_SEND_START", 51'000),
                                  Pair("GRPC_SEND_END", 57'000)));
}

TEST(TraceTextTest, HostileNamesStayInTheirStrings) {
  const Trace trace =
      testing::TraceOf(testing::RequestAt(0, testing::Hostile()), testing::Hostile());
  for (const TraceForm form : {TraceForm::kChrome, TraceForm::kTriton}) {
    const std::string text = TraceText(form, testing::kBegin).Of(trace);
    const json elements = Parsed(text);
    const bool is_chrome = form == TraceForm::kChrome;
    const json& names = is_chrome ? elements[0]["args"] : elements[0];
    EXPECT_EQ(elements.size(), is_chrome ? 7u : 2u) << text;
    EXPECT_EQ(names[is_chrome ? "model" : "model_name"], "a\"}],\n<b>\\\x01?? b");
    EXPECT_EQ(names[is_chrome ? "id" : "request_id"], "a\"}],\n<b>\\\x01?? b");
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127)) << text;
  }
}

}  // namespace
}  // namespace tilewire::service
