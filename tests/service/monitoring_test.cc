// SPDX-License-Identifier: Apache-2.0
//
// The monitoring port of a server on a fake engine.
#include "service/http/monitoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/http/server_metrics.h"
#include "tests/service/http/raw_request.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class MonitoringTest : public ServedFixture {
 protected:
  void StartAll() {
    Start();
    auto daemon = ServePages("127.0.0.1", 0, MonitoringPages(server_->Watched()));
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }
  // Its server, on which the daemon's pages look, ends after it.
  void TearDown() override { daemon_ = nullptr; }

  std::string Get(const std::string& path) { return tilewire::testing::Ask(daemon_->port(), path); }
  grpc::Status InferOn(const std::string& model, const std::string& version = "") {
    inference::ModelInferRequest request = GoodRequest();
    request.set_model_name(model);
    request.set_model_version(version);
    inference::ModelInferResponse response;
    return Infer(request, &response);
  }
  // The value of a metric with its labels; -1 where it is not told.
  double Told(const std::string& series) {
    const std::string text = MetricsOf(server_->Watched(), &machine_);
    const size_t at = text.find(absl::StrCat("\n", series, " "));
    if (at == std::string::npos) return -1;
    const size_t begin = at + series.size() + 2;
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(text.substr(begin, text.find('\n', begin) - begin), &value));
    return value;
  }
  // A request is counted before its client has the answer, but for its last step.
  void ExpectTold(const std::string& series, double value) {
    double told = -1;
    Happens([&] {
      told = Told(series);
      return told == value;
    });
    EXPECT_EQ(told, value) << series;
  }

  MachineCpu machine_{""};
  std::unique_ptr<HttpDaemon> daemon_;
};

TEST_F(MonitoringTest, RequestsForAVersionThatIsAbsentCountUnderTheirModel) {
  WriteFile(directory_ / "gone/1/model.onnx", "broken");
  Start();
  const std::string of_model = "tilewire_requests_total{model=\"echo\",version=\"\",";
  const std::string of_none = "tilewire_requests_total{model=\"\",version=\"\",";
  const std::string not_found = "protocol=\"grpc\",code=\"NOT_FOUND\"}";
  ExpectTold(of_model + not_found, 0);
  const std::string before = MetricsOf(server_->Watched(), &machine_);
  for (int version = 100; version < 120; ++version)
    EXPECT_FALSE(InferOn("echo", absl::StrCat(version)).ok());
  ExpectTold(of_model + not_found, 20);
  EXPECT_FALSE(InferOn("echo", "newest").ok());
  ExpectTold(of_model + "protocol=\"grpc\",code=\"INVALID_ARGUMENT\"}", 1);
  ExpectTold(of_none + not_found, 0);
  const std::string after = MetricsOf(server_->Watched(), &machine_);
  EXPECT_EQ(std::count(after.begin(), after.end(), '\n'),
            std::count(before.begin(), before.end(), '\n'))
      << "what clients send made new series";
  // The last version of a model takes the counts of its model with it.
  EXPECT_FALSE(InferOn("gone", "7").ok());
  const std::string of_gone = "tilewire_requests_total{model=\"gone\",version=\"\",";
  ExpectTold(of_gone + not_found, 1);
  models_->Remove(*models_->Peek("gone", 1));
  EXPECT_EQ(Told(of_gone + not_found), -1);
}

TEST_F(MonitoringTest, CountsRequestsOfTheirVersionAndOthersUnderNone) {
  Start();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(InferOn("echo").ok());
  ASSERT_TRUE(InferOn("echo", "1").ok());
  EXPECT_FALSE(InferOn("a client's \"name\"").ok());
  EXPECT_FALSE(InferOn("").ok());
  const auto requests = [](const char* model, const char* version, const char* code) {
    return absl::StrCat("tilewire_requests_total{model=\"", model, "\",version=\"", version,
                        "\",protocol=\"grpc\",code=\"", code, "\"}");
  };
  ExpectTold(requests("echo", "2", "OK"), 3);
  ExpectTold(requests("echo", "1", "OK"), 1);
  ExpectTold(requests("echo", "2", "NOT_FOUND"), 0);
  ExpectTold(requests("", "", "NOT_FOUND"), 1);
  ExpectTold(requests("", "", "INVALID_ARGUMENT"), 1);
  EXPECT_THAT(MetricsOf(server_->Watched(), &machine_), Not(HasSubstr("client's")));
  ExpectTold("tilewire_runs_total{model=\"echo\",version=\"2\"}", 3);
  ExpectTold("tilewire_rows_total{model=\"echo\",version=\"2\"}", 3);
  ExpectTold("tilewire_batch_rows_bucket{model=\"echo\",version=\"2\",le=\"1\"}", 3);
  ExpectTold("tilewire_request_seconds_count{model=\"echo\",version=\"2\"}", 3);
  EXPECT_GT(Told("tilewire_request_seconds_sum{model=\"echo\",version=\"2\"}"), 0);
}

TEST_F(MonitoringTest, TellsWhereTheTimeOfRequestsWent) {
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(20)); };
  Start();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(InferOn("echo").ok());
  const auto stage = [this](const char* name) {
    return Told(absl::StrCat("tilewire_stage_seconds_total{model=\"echo\",version=\"2\",stage=\"",
                             name, "\"}"));
  };
  const char* const core_seconds = "tilewire_core_seconds_total{model=\"echo\",version=\"2\"}";
  // Both answers were written when both clients have them, and counted a moment later.
  EXPECT_TRUE(Happens([&] { return stage("write") > 0; }));
  double held = 0;
  for (const char* name : {"plan", "input", "infer", "encode"}) {
    EXPECT_GE(stage(name), 0) << name;
    held += stage(name);
  }
  for (const char* name : {"decode", "queue"}) EXPECT_GT(stage(name), 0) << name;
  EXPECT_GE(Told(core_seconds), 0.04);
  EXPECT_NEAR(Told(core_seconds), held, 0.02) << "there is one thread";
}

TEST_F(MonitoringTest, RequestsThatFailHeldCoresToo) {
  grpc::ClientContext context;
  engine_.endless = true;
  engine_.on_run = [&context] {
    absl::SleepFor(absl::Milliseconds(50));
    context.TryCancel();
  };
  Start();
  inference::ModelInferResponse response;
  EXPECT_EQ(stub_->ModelInfer(&context, GoodRequest(), &response).error_code(),
            grpc::StatusCode::CANCELLED);
  ExpectTold("tilewire_running{model=\"echo\"}", 0);
  const char* const held = "tilewire_core_seconds_total{model=\"echo\",version=\"2\"}";
  EXPECT_TRUE(Happens([&] { return Told(held) > 0; }));
  EXPECT_GE(Told(held), 0.05);
  EXPECT_EQ(Told("tilewire_runs_total{model=\"echo\",version=\"2\"}"), 0);
}

TEST_F(MonitoringTest, CountsRefusalsByTheirReason) {
  options_.max_work_bytes = 2000;
  Start();
  const auto refused = [](const char* model, const char* version, const char* reason) {
    return absl::StrCat("tilewire_refused_total{model=\"", model, "\",version=\"", version,
                        "\",reason=\"", reason, "\"}");
  };
  EXPECT_FALSE(InferOn("bad").ok());
  ExpectTold(refused("bad", "1", "not_ready"), 1);
  inference::ModelInferRequest large = GoodRequest();
  for (auto& input : *large.mutable_inputs()) input.set_shape(0, 100);
  large.set_raw_input_contents(0, Floats(2400));
  large.set_raw_input_contents(1, Floats(500));
  inference::ModelInferResponse response;
  EXPECT_EQ(Infer(large, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectTold(refused("", "", "too_large"), 1);
  ExpectTold(refused("echo", "2", "too_late"), 0);
}

TEST_F(MonitoringTest, ALoadThatReplacesAVersionResetsNothing) {
  Start();
  ASSERT_TRUE(InferOn("echo", "1").ok());
  const std::string series = "tilewire_runs_total{model=\"echo\",version=\"1\"}";
  ExpectTold(series, 1);
  ServedModel again = *models_->Peek("echo", 1);
  again.statistics = nullptr;
  models_->Publish(std::move(again));
  EXPECT_EQ(Told(series), 1);
  ASSERT_TRUE(InferOn("echo", "1").ok());
  ExpectTold(series, 2);
}

TEST_F(MonitoringTest, TellsStatesAndTheServer) {
  Start();
  EXPECT_EQ(Told("tilewire_model_state{model=\"echo\",version=\"2\",state=\"READY\"}"), 1);
  EXPECT_EQ(Told("tilewire_model_state{model=\"echo\",version=\"2\",state=\"LOADING\"}"), 0);
  EXPECT_EQ(Told("tilewire_model_state{model=\"bad\",version=\"1\",state=\"UNAVAILABLE\"}"), 1);
  EXPECT_EQ(Told("tilewire_ready"), 0) << "one model is not";
  EXPECT_EQ(Told("tilewire_cores"), 1);
  EXPECT_EQ(Told("tilewire_waiting{model=\"echo\"}"), 0);
  EXPECT_EQ(Told("tilewire_work_bytes_limit"), static_cast<double>(options_.max_work_bytes));
  ConnectOverTcp();
  ASSERT_TRUE(InferOn("echo").ok());
  EXPECT_EQ(Told("tilewire_connections{protocol=\"grpc\"}"), 1);
}

TEST_F(MonitoringTest, AVersionThatIsTriedOutIsLoadingEverywhere) {
  StartAll();
  ServedModel arriving = *models_->Peek("echo", 1);
  arriving.version = 3;
  arriving.model = nullptr;
  arriving.state = ModelState::kArriving;
  models_->Publish(std::move(arriving));
  const std::string series = "tilewire_model_state{model=\"echo\",version=\"3\",state=\"";
  EXPECT_EQ(Told(series + "LOADING\"}"), 1);
  for (const char* state : {"READY", "UNAVAILABLE", "UNLOADING", "UNLOADED"})
    EXPECT_EQ(Told(absl::StrCat(series, state, "\"}")), 0) << state;
  EXPECT_THAT(Get("/statusz.json"), HasSubstr("\"state\":\"LOADING\""));
  EXPECT_THAT(Get("/statusz"), HasSubstr("it is tried out and loaded"));
  EXPECT_THAT(Get("/readyz"), Not(HasSubstr("version 3")));
  const auto index = Ask(&Stub::RepositoryIndex, inference::RepositoryIndexRequest());
  ASSERT_EQ(index.models_size(), 4);
  EXPECT_EQ(index.models(3).version(), "3");
  EXPECT_EQ(index.models(3).state(), "LOADING");
}

TEST_F(MonitoringTest, TheTimerTellsWhatWaitsAndRuns) {
  engine_.endless = true;
  options_.queue.express = false;  // no thread beside the one
  Start();
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back([this] { InferOn("echo"); });
  ExpectTold("tilewire_running{model=\"echo\"}", 1);
  ExpectTold("tilewire_waiting{model=\"echo\"}", 2);
  ExpectTold("tilewire_cores_busy", 1);
  engine_.endless = false;
  for (std::thread& client : clients) client.join();
  ExpectTold("tilewire_running{model=\"echo\"}", 0);
}

TEST_F(MonitoringTest, MetricsAreTextOfPrometheus) {
  StartAll();
  const std::string answer = Get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("\n# TYPE tilewire_requests_total counter\n"));
}

TEST_F(MonitoringTest, TellsTritonsMetricsUnderTritonsLabels) {
  Start();
  const std::shared_ptr<VersionStatistics> two = models_->Peek("echo", 2)->statistics;
  for (const auto& [code, refusal] :
       {std::pair(absl::StatusCode::kInternal, RequestRefusal::kNone),
        {absl::StatusCode::kInternal, RequestRefusal::kNone},
        {absl::StatusCode::kCancelled, RequestRefusal::kNone},
        {absl::StatusCode::kInvalidArgument, RequestRefusal::kNone},
        {absl::StatusCode::kResourceExhausted, RequestRefusal::kQueue}}) {
    two->Failed(code, refusal, absl::Milliseconds(1));
  }
  two->SetLoadTime(absl::Milliseconds(250));
  WatchedServer watched = server_->Watched();
  watched.dialects.triton = true;
  const ServerLoad load = {.work = {.models = {{"echo", {.waiting = 5}}}}};
  watched.load = [&load] { return load; };
  const std::string text = MetricsOf(watched, &machine_);
  const std::string failed = "nv_inference_request_failure{model=\"echo\",version=\"2\",reason=";
  for (const std::string& line :
       {absl::StrCat(failed, "\"BACKEND\"} 2"), absl::StrCat(failed, "\"CANCELED\"} 1"),
        absl::StrCat(failed, "\"OTHER\"} 1"), absl::StrCat(failed, "\"REJECTED\"} 1"),
        std::string("nv_inference_pending_request_count{model=\"echo\",version=\"2\"} 5"),
        std::string("nv_inference_pending_request_count{model=\"bad\",version=\"1\"} 0"),
        std::string("nv_model_load_duration_secs{model=\"echo\",version=\"2\"} 0.25")}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", line, "\n")));
  }
}

TEST_F(MonitoringTest, ReadyzNamesTheModelsThatAreMissing) {
  StartAll();
  EXPECT_THAT(Get("/healthz"), EndsWith("\r\n\r\nlive\n"));
  const std::string answer = Get("/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nnot ready\nmodel 'bad' version 1: UNAVAILABLE: "));
  EXPECT_THAT(answer, Not(HasSubstr("echo")));
  EXPECT_THAT(answer, Not(HasSubstr(directory_.string()))) << "no client sees a path";
}

TEST_F(MonitoringTest, WhileItDrainsTheServerIsLiveAndNotReady) {
  options_.ready_when_any = true;
  StartAll();
  EXPECT_THAT(Get("/readyz"), EndsWith("\r\n\r\nready\n"));
  server_->StartDrain();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get("/readyz"), EndsWith("\r\n\r\ndraining\n"));
  server_->Drain();
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 ")) << "the daemon stops last";
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MonitoringTest, OtherPathsListThePages) {
  StartAll();
  const std::string answer = Get("/");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(answer, HasSubstr("/metrics /healthz /readyz"));
}

}  // namespace
}  // namespace tilewire::service
