// SPDX-License-Identifier: Apache-2.0
//
// Which requests of a served model are traced, and what TraceSetting tells and changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"
#include "service/trace/tracer.h"
#include "tests/service/served_fixture.h"
#include "tests/support/captured_log.h"

namespace tilewire::service {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using Headers = std::map<std::string, std::string>;

constexpr char kTraceId[] = "0af7651916cd43dd8448eb211c80319c";

Headers TraceParent(bool sampled) {
  return {{"traceparent", absl::StrCat("00-", kTraceId, "-b7ad6b7169203331-0", sampled ? 1 : 0)}};
}

template <typename Id>
std::string HexDigits(const Id& id) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(id.data()), id.size()});
}

class ListSink final : public TraceSink {
 public:
  explicit ListSink(std::vector<Trace>* traces) : TraceSink(TraceLoss::kFile), traces_(*traces) {}
  void Write(absl::Span<const Trace> traces) override {
    traces_.insert(traces_.end(), traces.begin(), traces.end());
  }

 private:
  std::vector<Trace>& traces_;
};

class TracesTest : public ServedFixture {
 protected:
  void TearDown() override { server_ = nullptr; }  // before the tracer, which it uses

  void StartWith(const TraceTerms& terms) {
    std::vector<std::unique_ptr<TraceSink>> sinks;
    sinks.push_back(std::make_unique<ListSink>(&traces_));
    const auto name_of = [this](uint32_t number) -> TraceMaker::Name {
      const Statistics::Name name = models_->statistics().NameOf(number);
      return {name.model, name.version};
    };
    tracer_ = std::make_unique<Tracer>(
        Tracer::Options{.terms = terms, .name_of = name_of, .file = "t.json", .mode = "triton"},
        std::move(sinks));
    options_.tracer = tracer_.get();
    options_.open_rights.Open(Right::kSettings);
    Start();
  }

  // All that was traced; nothing can be served after it.
  std::vector<Trace> End() {
    server_ = nullptr;
    tracer_ = nullptr;
    return traces_;
  }

  grpc::Status Send(const inference::ModelInferRequest& request, const Headers& headers = {}) {
    grpc::ClientContext context;
    for (const auto& [name, value] : headers) context.AddMetadata(name, value);
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  std::string Change(const std::string& name, const std::vector<std::string>& values) {
    inference::TraceSettingRequest request;
    auto& setting = (*request.mutable_settings())[name];
    for (const std::string& value : values) setting.add_value(value);
    return Told(Ask(&Stub::TraceSetting, request), name);
  }
  static std::string Told(const inference::TraceSettingResponse& response,
                          const std::string& name) {
    const auto found = response.settings().find(name);
    return found == response.settings().end() ? "" : found->second.value(0);
  }

  std::vector<Trace> traces_;
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(TracesTest, ATraceHasTheIdsOfTheClientAndTheStagesOfTheRequest) {
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(5)); };
  StartWith({.rate = 1'000'000});
  ASSERT_TRUE(Send(GoodRequest()).ok()) << "the first of a million";
  ASSERT_TRUE(Send(GoodRequest(), TraceParent(true)).ok());
  const std::vector<Trace> traces = End();
  ASSERT_THAT(traces, SizeIs(2));
  EXPECT_EQ(traces[0].parent_id, SpanId());
  EXPECT_NE(traces[0].id, TraceId());
  const Trace& trace = traces[1];
  EXPECT_EQ(HexDigits(trace.id), kTraceId);
  EXPECT_EQ(HexDigits(trace.parent_id), "b7ad6b7169203331");
  EXPECT_EQ(trace.request_id, "7");
  EXPECT_EQ(trace.model, "echo");
  EXPECT_EQ(trace.version, 2);
  EXPECT_EQ(trace.record.code, 0);
  const auto run = absl::c_find_if(
      trace.spans, [](const TraceSpan& span) { return absl::string_view(span.name) == "run"; });
  ASSERT_NE(run, trace.spans.end());
  EXPECT_GE(run->end_ns - run->start_ns, 5'000'000);
  const TraceSpan& step = trace.spans.back();
  EXPECT_EQ(step.name, "copy") << "the longest step of the run";
  EXPECT_EQ(step.parent_id, run->id);
  EXPECT_EQ(step.end_ns - step.start_ns, 3000);
  EXPECT_GE(step.start_ns, run->start_ns);
  EXPECT_LE(step.end_ns, run->end_ns);
}

TEST_F(TracesTest, TakesOneInSoManyBesideThoseThatClientsTrace) {
  StartWith({.rate = 5});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Send(GoodRequest(), TraceParent(false)).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Send(GoodRequest(), TraceParent(true)).ok());
  Ask(&Stub::ServerMetadata, {});
  EXPECT_THAT(End(), SizeIs(2 + 3));
}

TEST_F(TracesTest, IdsComeFromTheRequestElseFromAHeaderElseAreMade) {
  StartWith({.rate = 1});
  inference::ModelInferRequest unnamed = GoodRequest();
  unnamed.clear_id();
  ASSERT_TRUE(Send(GoodRequest(), {{"x-request-id", "header"}}).ok());
  ASSERT_TRUE(Send(unnamed, {{"x-request-id", std::string(60, 'h')}}).ok());
  ASSERT_TRUE(Send(unnamed, {{"traceparent", "00-not-a-trace"}}).ok());
  std::vector<std::string> ids;
  for (const Trace& trace : End()) ids.push_back(trace.request_id);
  EXPECT_THAT(ids, ElementsAre("7", std::string(40, 'h'), MatchesRegex("[0-9a-f]{8}-[0-9a-f]+")));
}

// A model that is not served is named by a client alone, whose text goes nowhere.
TEST_F(TracesTest, RequestsThatFailAreTracedToo) {
  StartWith({.rate = 1});
  inference::ModelInferRequest request = GoodRequest();
  request.set_model_name("<nope>");
  EXPECT_EQ(Send(request).error_code(), StatusCode::NOT_FOUND);
  request = GoodRequest();
  request.set_raw_input_contents(1, "123");
  EXPECT_EQ(Send(request).error_code(), StatusCode::INVALID_ARGUMENT);
  const std::vector<Trace> traces = End();
  ASSERT_THAT(traces, SizeIs(2));
  EXPECT_EQ(traces[0].model, "");
  EXPECT_EQ(traces[0].record.code, static_cast<uint8_t>(absl::StatusCode::kNotFound));
  EXPECT_EQ(traces[1].model, "echo");
  EXPECT_EQ(traces[1].record.code, static_cast<uint8_t>(absl::StatusCode::kInvalidArgument));
}

TEST_F(TracesTest, EachMessageOfAStreamIsARequest) {
  StartWith({.rate = 1'000'000});
  grpc::ClientContext context;
  context.AddMetadata("traceparent", TraceParent(true)["traceparent"]);
  const auto stream = stub_->ModelStreamInfer(&context);
  inference::ModelStreamInferResponse response;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(stream->Write(GoodRequest()));
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  const std::vector<Trace> traces = End();
  ASSERT_THAT(traces, SizeIs(3));
  for (const Trace& trace : traces) EXPECT_EQ(HexDigits(trace.id), kTraceId);
  EXPECT_NE(traces[0].request().id, traces[1].request().id);
}

TEST_F(TracesTest, SettingsChangeWhatIsTraced) {
  StartWith({.rate = 1});
  EXPECT_EQ(Change("trace_level", {"OFF"}), "OFF");
  ASSERT_TRUE(Send(GoodRequest(), TraceParent(true)).ok());
  EXPECT_EQ(Change("trace_count", {"2"}), "2");
  EXPECT_EQ(Change("trace_level", {"TIMESTAMPS"}), "TIMESTAMPS");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Send(GoodRequest()).ok());
  EXPECT_EQ(Told(Ask(&Stub::TraceSetting, {}), "trace_count"), "0") << "those that are left";
  EXPECT_EQ(Change("trace_rate", {"1000"}), "1000");
  EXPECT_EQ(Change("trace_rate", {}), "1") << "as at the start";
  EXPECT_EQ(Change("trace_count", {}), "-1");
  ASSERT_TRUE(Send(GoodRequest()).ok());
  EXPECT_THAT(End(), SizeIs(2 + 1));
}

TEST_F(TracesTest, AChangeIsALineWithOldAndNewValues) {
  tilewire::testing::CapturedLog log(LogForm::kJson);
  StartWith({.rate = 1, .count = 9});
  ASSERT_TRUE(Send(GoodRequest()).ok()) << "which lowers the count";
  Change("trace_rate", {"5"});
  Change("trace_rate", {"5"});
  Change("trace_colour", {"red"});
  const std::vector<std::string> lines = log.LinesWith("settings changed");
  ASSERT_THAT(lines, SizeIs(1));
  const auto line = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["method"], "TraceSetting");
  EXPECT_EQ(line["changed"], "trace_rate from 1 to 5");
  EXPECT_NE(line["peer"], "");
  End();
}

TEST_F(TracesTest, TheLineOfATracedRequestHasTheIdOfItsTrace) {
  tilewire::testing::CapturedLog log(LogForm::kJson);
  StartWith({.rate = 2});
  inference::ModelInferRequest bad = GoodRequest();
  bad.set_raw_input_contents(1, "123");
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Send(bad).ok());
  EXPECT_FALSE(Send(bad, TraceParent(true)).ok());
  const std::vector<Trace> traces = End();
  std::vector<std::string> ids;
  for (const std::string& line : log.LinesWith("request ModelInfer"))
    ids.push_back(nlohmann::json::parse(line)["trace_id"]);
  ASSERT_THAT(traces, SizeIs(2));
  EXPECT_THAT(ids, ElementsAre(HexDigits(traces[0].id), "", kTraceId));
}

TEST_F(TracesTest, SettingsAreRefusedByName) {
  StartWith({.rate = 7, .count = 9});
  const struct {
    std::string name;
    std::vector<std::string> values;
    std::string text;
  } cases[] = {
      {"trace_level", {"TENSORS"}, "clients' data"},
      {"trace_level", {"TIMESTAMPS", "TENSORS"}, "clients' data"},
      {"trace_level", {"OFF", "TIMESTAMPS"}, "exclude"},
      {"trace_level", {"MAX"}, "'MAX' is not"},
      {"trace_rate", {"0"}, "from 1 to 4294967295"},
      {"trace_rate", {"-1"}, "'-1'"},
      {"trace_rate", {"4294967296"}, "'4294967296'"},
      {"trace_rate", {"1", "2"}, "several values"},
      {"trace_rate", {"1e3"}, "'1e3'"},
      {"trace_rate", {""}, "''"},
      {"trace_count", {"-2"}, "from -1"},
      {"trace_count", {"99999999999999999999"}, "'99999999999999999999'"},
      {"trace_file", {"/tmp/x"}, "cannot be changed over the wire"},
      {"trace_mode", {"opentelemetry"}, "cannot be changed over the wire"},
      {"log_frequency", {"1"}, "cannot be changed over the wire"},
      {"trace_\n<b>", {"1"}, "unknown"},
  };
  for (const auto& [name, values, text] : cases) {
    Change(name, values);
    EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status_.error_message(), HasSubstr(text)) << name;
    if (name[6] == '\n') continue;  // it is shown otherwise
    EXPECT_THAT(status_.error_message(), HasSubstr(name));
  }
  const auto told = Ask(&Stub::TraceSetting, {});
  const Headers settings = {{"trace_level", "TIMESTAMPS"}, {"trace_rate", "7"},
                            {"trace_count", "9"},          {"log_frequency", "0"},
                            {"trace_file", "t.json"},      {"trace_mode", "triton"}};
  EXPECT_EQ(told.settings_size(), static_cast<int>(settings.size()));
  for (const auto& [name, value] : settings) EXPECT_EQ(Told(told, name), value) << name;
}

// A client that reads settings, changes one and sends all of them.
TEST_F(TracesTest, SettingsThatAreSentBackStay) {
  StartWith({.rate = 7, .count = 9});
  inference::TraceSettingRequest request;
  const auto send_back = [&](const std::string& name, const std::string& value) {
    request.clear_settings();
    const auto told = Ask(&Stub::TraceSetting, {});
    for (const auto& [setting, values] : told.settings())
      *(*request.mutable_settings())[setting].mutable_value() = values.value();
    if (!name.empty()) request.mutable_settings()->at(name).set_value(0, value);
    return Told(Ask(&Stub::TraceSetting, request), name);
  };
  send_back("", "");
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(send_back("trace_rate", "5"), "5");
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(tracer_->sampler().terms().count, 9);
  send_back("trace_mode", "chrome");
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT);
  request.set_model_name("echo");
  send_back("", "");
  EXPECT_TRUE(status_.ok()) << status_.error_message();
}

TEST_F(TracesTest, AllOrNoneOfTheChangesAreMade) {
  StartWith({.rate = 7});
  inference::TraceSettingRequest request;
  (*request.mutable_settings())["trace_count"].add_value("1");
  (*request.mutable_settings())["trace_level"].add_value("OFF");
  (*request.mutable_settings())["trace_rate"].add_value("none");
  Ask(&Stub::TraceSetting, request);
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(tracer_->sampler().terms().count, TraceTerms::kNoEnd);
  EXPECT_TRUE(tracer_->sampler().IsOn());
}

TEST_F(TracesTest, OneModelHasNoSettingsOfItsOwn) {
  StartWith({.rate = 7});
  inference::TraceSettingRequest request;
  request.set_model_name("echo");
  EXPECT_EQ(Told(Ask(&Stub::TraceSetting, request), "trace_rate"), "7");
  (*request.mutable_settings())["trace_rate"];
  EXPECT_EQ(Told(Ask(&Stub::TraceSetting, request), "trace_rate"), "7") << "nothing to clear";
  EXPECT_TRUE(status_.ok());
  (*request.mutable_settings())["trace_rate"].add_value("1");
  Ask(&Stub::TraceSetting, request);
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status_.error_message(), HasSubstr("without a model's name"));
  EXPECT_EQ(tracer_->sampler().terms().rate, 7u);
}

TEST_F(TracesTest, NothingIsTracedWhereItIsOff) {
  StartWith({.on = false, .rate = 1});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Send(GoodRequest(), TraceParent(true)).ok());
  EXPECT_THAT(End(), IsEmpty());
}

}  // namespace
}  // namespace tilewire::service
