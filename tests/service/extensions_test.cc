// SPDX-License-Identifier: Apache-2.0
//
// Triton's extensions of the protocol: statistics, configs, classes, settings, and shared
// memory, which there is none of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "service/models/model_control.h"
#include "spdlog/spdlog.h"
#include "tests/service/served_fixture.h"
#include "tests/support/captured_log.h"

namespace tilewire::service {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class ExtensionsTest : public ServedFixture {
 protected:
  using Stub = inference::GRPCInferenceService::Stub;

  // Calls a method of the stub; `status_` is its status.
  template <typename Request, typename Response>
  Response Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request) {
    grpc::ClientContext context;
    Response response;
    status_ = (stub_.get()->*method)(&context, request, &response);
    return response;
  }

  inference::ModelStatistics Statistics(const std::string& version) {
    inference::ModelStatisticsRequest request;
    request.set_name("echo");
    request.set_version(version);
    const auto response = Ask(&Stub::ModelStatistics, request);
    EXPECT_TRUE(status_.ok()) << status_.error_message();
    EXPECT_EQ(response.model_stats_size(), 1);
    return response.model_stats(0);
  }

  grpc::Status status_;
};

inference::ModelInferRequest BatchOf(int rows) {
  inference::ModelInferRequest request = GoodRequest();
  for (auto& input : *request.mutable_inputs()) input.set_shape(0, rows);
  request.set_raw_input_contents(0, Floats(24 * rows));
  request.set_raw_input_contents(1, Floats(5 * rows));
  return request;
}

TEST_F(ExtensionsTest, StatisticsCountEveryRequestOfAVersionOnce) {
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(10)); };
  Start();
  inference::ModelInferResponse response;
  for (const int rows : {1, 3, 3}) ASSERT_TRUE(Infer(BatchOf(rows), &response).ok());
  inference::ModelInferRequest bad = GoodRequest();
  bad.set_raw_input_contents(1, "123");
  EXPECT_FALSE(Infer(bad, &response).ok());
  const inference::ModelStatistics told = Statistics("2");
  EXPECT_EQ(told.name(), "echo");
  EXPECT_EQ(told.version(), "2");
  EXPECT_EQ(told.inference_count(), 7u);
  EXPECT_EQ(told.execution_count(), 3u);
  EXPECT_GT(told.last_inference(), 1'600'000'000'000u);
  const inference::InferStatistics& stats = told.inference_stats();
  EXPECT_EQ(stats.success().count(), 3u);
  EXPECT_EQ(stats.fail().count(), 1u);
  EXPECT_EQ(stats.queue().count(), 3u);
  EXPECT_GT(stats.compute_infer().ns(), 0u);
  EXPECT_GE(stats.success().ns(), 30'000'000u);
  // The fake model says so of each run.
  EXPECT_EQ(stats.compute_input().ns(), 3 * 7'000'000u);
  EXPECT_GE(stats.success().ns(), stats.queue().ns() + stats.compute_infer().ns());
  ASSERT_EQ(told.batch_stats_size(), 2);
  EXPECT_EQ(told.batch_stats(0).batch_size(), 1u);
  EXPECT_EQ(told.batch_stats(1).batch_size(), 3u);
  EXPECT_EQ(told.batch_stats(1).compute_infer().count(), 2u);
  ASSERT_EQ(told.memory_usage_size(), 1);
  EXPECT_EQ(told.memory_usage(0).type(), "CPU");
  EXPECT_EQ(told.memory_usage(0).byte_size(),
            static_cast<uint64_t>(testing::FakeModel::kHeldBytes));
  EXPECT_EQ(Statistics("1").execution_count(), 0u);
}

TEST_F(ExtensionsTest, StatisticsOutliveAReload) {
  Start();
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(GoodRequest(), &response).ok());
  for (const auto& served : models_->All()) {
    ServedModel again = *served;
    again.statistics = nullptr;
    models_->Publish(std::move(again));
  }
  ASSERT_TRUE(Infer(GoodRequest(), &response).ok());
  EXPECT_EQ(Statistics("2").execution_count(), 2u);
}

TEST_F(ExtensionsTest, StatisticsOfAllAreThoseThatAreLoaded) {
  Start();
  const auto all = Ask(&Stub::ModelStatistics, inference::ModelStatisticsRequest());
  ASSERT_TRUE(status_.ok());
  ASSERT_EQ(all.model_stats_size(), 2) << "model 'bad' did not load";
  EXPECT_EQ(all.model_stats(0).version(), "1");
  inference::ModelStatisticsRequest request;
  request.set_name("nope");
  Ask(&Stub::ModelStatistics, request);
  EXPECT_EQ(status_.error_code(), StatusCode::NOT_FOUND);
  request.set_name("bad");
  request.set_version("1");
  Ask(&Stub::ModelStatistics, request);
  EXPECT_EQ(status_.error_code(), StatusCode::FAILED_PRECONDITION);
}

TEST_F(ExtensionsTest, ConfigIsCompletedFromTheFile) {
  options_.config.max_batch = 17;
  Start();
  inference::ModelConfigRequest request;
  request.set_name("echo");
  const inference::ModelConfig config = Ask(&Stub::ModelConfig, request).config();
  ASSERT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(config.name(), "echo");
  EXPECT_EQ(config.platform(), "onnxruntime_onnx");
  EXPECT_EQ(config.backend(), "onnxruntime");
  EXPECT_EQ(config.max_batch_size(), 17);
  EXPECT_EQ(config.default_model_filename(), "model.onnx");
  ASSERT_EQ(config.input_size(), 2);
  EXPECT_EQ(config.input(0).name(), "image");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(2, 3, 4));
  ASSERT_EQ(config.output_size(), 2);
  EXPECT_THAT(config.output(1).dims(), ElementsAre(5));
  EXPECT_EQ(config.version_policy().latest().num_versions(), 1u);
  inference::ModelMetadataRequest metadata;
  metadata.set_name("echo");
  EXPECT_EQ(Ask(&Stub::ModelMetadata, metadata).platform(), config.platform());
  request.set_name("bad");
  Ask(&Stub::ModelConfig, request);
  EXPECT_EQ(status_.error_code(), StatusCode::FAILED_PRECONDITION);
  request.set_name("nope");
  Ask(&Stub::ModelConfig, request);
  EXPECT_EQ(status_.error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ExtensionsTest, ConfigTellsThePolicyThatApplies) {
  for (const auto& [latest, text, told] :
       {std::tuple(3u, "", "latest { num_versions: 3 }"),
        {0u, "", "all { }"},
        {3u, "version_policy { specific { versions: [ 2 ] } }", "specific { versions: 2 }"}}) {
    WriteFile(directory_ / "echo/config.pbtxt", absl::StrCat("platform: 'onnx' ", text));
    options_.config.latest = latest;
    Start();
    inference::ModelConfigRequest request;
    request.set_name("echo");
    const inference::ModelConfig config = Ask(&Stub::ModelConfig, request).config();
    EXPECT_EQ(config.version_policy().ShortDebugString(), told);
    inference::ModelMetadataRequest metadata;
    metadata.set_name("echo");
    EXPECT_EQ(Ask(&Stub::ModelMetadata, metadata).platform(), "onnx") << "as the settings say";
    server_ = nullptr;
  }
}

TEST_F(ExtensionsTest, ClassesStandInThePlaceOfAnOutputsValues) {
  Start();
  inference::ModelInferRequest request = GoodRequest();
  request.add_outputs()->set_name("image_out");
  auto* output = request.add_outputs();
  output->set_name("row_out");
  (*output->mutable_parameters())["classification"].set_int64_param(2);
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), Floats(24));
  EXPECT_EQ(response.outputs(1).datatype(), "BYTES");
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(1, 2));
  // labels.txt has two lines.
  EXPECT_THAT(ElementsOfBytes(response.raw_output_contents(1)), ElementsAre("104:4", "103:3"));
  request.set_raw_input_contents(1, Floats(5, -4));
  std::string reversed;
  for (int i = 4; i >= 0; --i) reversed += Floats(1, i);
  request.set_raw_input_contents(1, reversed);
  ASSERT_TRUE(Infer(request, &response).ok());
  EXPECT_THAT(ElementsOfBytes(response.raw_output_contents(1)), ElementsAre("4:0:zero", "3:1:one"));
}

// One request runs while the others come; the model computes one at a time.
TEST_F(ExtensionsTest, APriorityIsServedBeforeThoseThatCameEarlier) {
  absl::Notification runs, go_on;
  std::mutex mutex;
  std::vector<std::string> order;
  const auto answered = [&] {
    const std::lock_guard lock(mutex);
    return order.size();
  };
  size_t begun = 0;
  engine_.on_run = [&] {
    if (begun == 0) {
      runs.Notify();
      go_on.WaitForNotification();
    }
    // Clients note their answers in the order of the runs.
    EXPECT_TRUE(Happens([&] { return answered() == begun; }));
    ++begun;
  };
  options_.queue.express = false;  // threads beside the queue run what is short in any order
  Start(/*max_queue=*/64);
  std::vector<std::thread> clients;
  const auto send = [&](const std::string& id, int priority) {
    inference::ModelInferRequest request = GoodRequest();
    request.set_id(id);
    if (priority > 0) (*request.mutable_parameters())["priority"].set_uint64_param(priority);
    clients.emplace_back([&, id, request] {
      inference::ModelInferResponse response;
      EXPECT_TRUE(Infer(request, &response).ok());
      const std::lock_guard lock(mutex);
      order.push_back(id);
    });
  };
  send("first", 0);
  runs.WaitForNotification();
  const auto await_waiting = [this](int64_t count) {
    EXPECT_TRUE(Happens([&] {
      const auto models = server_->Watched().load().work.models;
      const auto echo = models.find("echo");
      return echo != models.end() && echo->second.waiting == count;
    }));
  };
  for (int i = 0; i < 9; ++i) send("ordinary", i % 2 == 0 ? 0 : 2);
  send("low", 3);
  await_waiting(10);
  send("high", 1);
  await_waiting(11);
  go_on.Notify();
  for (std::thread& client : clients) client.join();
  ASSERT_EQ(order.size(), 12u);
  EXPECT_EQ(order[0], "first");
  EXPECT_EQ(order[1], "high");
  EXPECT_EQ(order[11], "low");
}

TEST_F(ExtensionsTest, ThereIsNoSharedMemory) {
  Start();
  EXPECT_EQ(Ask(&Stub::SystemSharedMemoryStatus, {}).regions_size(), 0);
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(Ask(&Stub::CudaSharedMemoryStatus, {}).regions_size(), 0);
  EXPECT_TRUE(status_.ok());
  inference::SystemSharedMemoryStatusRequest one;
  one.set_name("r");
  Ask(&Stub::SystemSharedMemoryStatus, one);
  EXPECT_EQ(status_.error_code(), StatusCode::NOT_FOUND);
  Ask(&Stub::SystemSharedMemoryUnregister, {});
  EXPECT_TRUE(status_.ok());
  Ask(&Stub::CudaSharedMemoryUnregister, {});
  EXPECT_TRUE(status_.ok());
  inference::SystemSharedMemoryRegisterRequest region;
  region.set_name("r");
  region.set_key("/r");
  Ask(&Stub::SystemSharedMemoryRegister, region);
  EXPECT_EQ(status_.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status_.error_message(),
            "region 'r': tensors travel in messages only, not in shared memory");
  inference::CudaSharedMemoryRegisterRequest device;
  device.set_name("d");
  Ask(&Stub::CudaSharedMemoryRegister, device);
  EXPECT_EQ(status_.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status_.error_message(), HasSubstr("no CUDA device"));
}

TEST_F(ExtensionsTest, LogSettingsAreToldAndChangedWhereThatIsOpen) {
  const auto before = spdlog::get_level();
  options_.open_rights.Open(Right::kSettings);
  Start();
  inference::LogSettingsRequest request;
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(1);
  auto told = Ask(&Stub::LogSettings, request);
  ASSERT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(spdlog::get_level(), spdlog::level::debug);
  EXPECT_EQ(told.settings().at("log_verbose_level").uint32_param(), 1u);
  EXPECT_TRUE(told.settings().at("log_info").bool_param());
  EXPECT_EQ(told.settings().at("log_file").string_param(), "");
  EXPECT_EQ(told.settings_size(), 6);
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(0);
  (*request.mutable_settings())["log_info"].set_bool_param(false);
  told = Ask(&Stub::LogSettings, request);
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  const struct {
    const char *name, *text;
    std::function<void(inference::LogSettingsRequest::SettingValue*)> set;
  } refused[] = {
      {"log_file", "cannot be changed", [](auto* value) { value->set_string_param("/tmp/x"); }},
      {"log_loudness", "unknown", [](auto* value) { value->set_bool_param(true); }},
      {"log_info", "true or false", [](auto* value) { value->set_uint32_param(1); }},
      {"log_verbose_level", "integer", [](auto* value) { value->set_bool_param(true); }},
      {"log_error", "threshold", [](auto* value) { value->set_bool_param(false); }},
  };
  for (const auto& [name, text, set] : refused) {
    request.clear_settings();
    set(&(*request.mutable_settings())[name]);
    Ask(&Stub::LogSettings, request);
    EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT) << name;
    EXPECT_THAT(status_.error_message(), HasSubstr(text));
    EXPECT_EQ(spdlog::get_level(), spdlog::level::warn) << name;
  }
  spdlog::set_level(before);
}

TEST_F(ExtensionsTest, LogSettingsThatAreSentBackAsToldChangeNothing) {
  options_.open_rights.Open(Right::kSettings);
  Start();
  const auto told = Ask(&Stub::LogSettings, {});
  inference::LogSettingsRequest request;
  ASSERT_TRUE(request.ParseFromString(told.SerializeAsString())) << "the fields are the same";
  ASSERT_EQ(request.settings_size(), 6);
  const auto again = Ask(&Stub::LogSettings, request);
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  for (const auto& [name, value] : told.settings())
    EXPECT_EQ(again.settings().at(name).SerializeAsString(), value.SerializeAsString()) << name;
  (*request.mutable_settings())["log_file"].set_bool_param(false);
  Ask(&Stub::LogSettings, request);
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT) << "the type is another one";
}

TEST_F(ExtensionsTest, AChangeOfTheLogIsALineWithOldAndNewValuesAndThePeer) {
  tilewire::testing::CapturedLog log;
  options_.open_rights.Open(Right::kSettings);
  Start();
  ConnectOverTcp();
  inference::LogSettingsRequest request;
  auto& settings = *request.mutable_settings();
  settings["log_verbose_level"].set_uint32_param(1);
  for (int i = 0; i < 2; ++i) Ask(&Stub::LogSettings, request);
  std::vector<std::string> lines = log.LinesWith("settings changed");
  ASSERT_EQ(lines.size(), 1) << "the second request changes nothing";
  EXPECT_THAT(lines[0], HasSubstr("[info] settings changed by LogSettings id "));
  EXPECT_THAT(lines[0], HasSubstr(" from ipv4:127.0.0.1:"));
  EXPECT_THAT(lines[0], EndsWith(": log_verbose_level from 0 to 1"));
  settings["log_verbose_level"].set_uint32_param(0);
  settings["log_info"].set_bool_param(false);
  Ask(&Stub::LogSettings, request);
  settings["log_info"].set_bool_param(true);
  Ask(&Stub::LogSettings, request);
  settings["log_error"].set_bool_param(false);
  Ask(&Stub::LogSettings, request);
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT);
  lines = log.LinesWith("settings changed");
  ASSERT_EQ(lines.size(), 3) << "what is refused changes nothing";
  EXPECT_THAT(lines[1], EndsWith(": log_info from true to false, log_verbose_level from 1 to 0"))
      << "written before lines like it are hidden";
  EXPECT_THAT(lines[2], EndsWith(": log_info from false to true"));
  server_ = nullptr;
}

TEST_F(ExtensionsTest, TheVerboseLevelGivesEachRequestALine) {
  tilewire::testing::CapturedLog log;
  options_.open_rights.Open(Right::kSettings);
  Start();
  inference::ModelInferResponse response;
  ASSERT_TRUE(Infer(GoodRequest(), &response).ok());
  EXPECT_TRUE(log.LinesWith("request ModelInfer").empty());
  inference::LogSettingsRequest request;
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(1);
  Ask(&Stub::LogSettings, request);
  ASSERT_TRUE(status_.ok()) << status_.error_message();
  ASSERT_TRUE(Infer(GoodRequest(), &response).ok());
  EXPECT_EQ(log.LinesWith("[debug] request ModelInfer echo id 7 from ").size(), 1);
  server_ = nullptr;
}

TEST_F(ExtensionsTest, SettingsAreToldButNotChangedUnlessThatIsOpen) {
  Start();
  EXPECT_EQ(Ask(&Stub::LogSettings, {}).settings_size(), 6);
  EXPECT_TRUE(status_.ok());
  const auto traces = Ask(&Stub::TraceSetting, {});
  EXPECT_TRUE(status_.ok());
  EXPECT_THAT(traces.settings().at("trace_level").value(), ElementsAre("OFF"));
  inference::LogSettingsRequest log;
  (*log.mutable_settings())["log_info"].set_bool_param(false);
  Ask(&Stub::LogSettings, log);
  EXPECT_EQ(status_.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status_.error_message(), HasSubstr("'settings'"));
  inference::TraceSettingRequest trace;
  (*trace.mutable_settings())["trace_level"].add_value("OFF");
  Ask(&Stub::TraceSetting, trace);
  EXPECT_EQ(status_.error_code(), StatusCode::PERMISSION_DENIED);
}

TEST_F(ExtensionsTest, TracesCannotBeTurnedOnWhereNoneAreWritten) {
  options_.open_rights.Open(Right::kSettings);
  Start();
  const struct {
    const char *name, *value;
    StatusCode code;
  } changes[] = {
      {"trace_level", "OFF", StatusCode::OK},
      {"trace_level", "TIMESTAMPS", StatusCode::FAILED_PRECONDITION},
      {"trace_level", "TENSORS", StatusCode::INVALID_ARGUMENT},
      {"trace_rate", "10", StatusCode::FAILED_PRECONDITION},
      {"trace_rate", "1000", StatusCode::OK},  // as it is told
      {"trace_mode", "chrome", StatusCode::OK},
      {"trace_mode", "triton", StatusCode::INVALID_ARGUMENT},
      {"trace_file", "", StatusCode::OK},
      {"trace_file", "/tmp/x", StatusCode::INVALID_ARGUMENT},
      {"trace_colour", "red", StatusCode::INVALID_ARGUMENT},
  };
  for (const auto& [name, value, code] : changes) {
    inference::TraceSettingRequest request;
    (*request.mutable_settings())[name].add_value(value);
    Ask(&Stub::TraceSetting, request);
    EXPECT_EQ(status_.error_code(), code) << name << " " << value;
    if (code != StatusCode::OK) {
      EXPECT_THAT(status_.error_message(), HasSubstr(name));
    }
    if (code == StatusCode::FAILED_PRECONDITION) {
      EXPECT_THAT(status_.error_message(), HasSubstr("--trace_file"));
    }
  }
  inference::TraceSettingRequest of_model;
  of_model.set_model_name("nope");
  Ask(&Stub::TraceSetting, of_model);
  EXPECT_EQ(status_.error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ExtensionsTest, MetadataTellsWhatIsOn) {
  options_.serve_plans = false;
  options_.open_rights.Open(Right::kRepository);
  Start();
  EXPECT_THAT(Ask(&Stub::ServerMetadata, {}).extensions(),
              ::testing::UnorderedElementsAre(
                  "classification", "layout", "logging", "model_configuration", "schedule_policy",
                  "statistics", "trace", "tilewire.v1.PrimitiveService"));
}

// Takes loads by request, or, as where models are followed on disk, refuses all.
class OpenControl final : public ModelControl {
 public:
  void Load(const std::string&, std::shared_ptr<const inference::ModelConfig>,
            std::vector<UploadedFile>, Done done) override {
    done(absl::OkStatus());
  }
  void Unload(const std::string&, Done done) override { done(absl::OkStatus()); }
  int64_t MostUploadBytes() const override { return 0; }
  bool TakesRequests() const override { return takes; }

  bool takes = true;
};

TEST_F(ExtensionsTest, LoadsAreToldWhereTheyArePossible) {
  for (const bool is_open : {false, true}) {
    OpenControl control;
    options_.open_rights = {};
    if (is_open) options_.open_rights.Open(Right::kRepository);
    Start();
    for (const bool takes : {false, true}) {
      control.takes = takes;
      server_->SetModelControl(&control);
      EXPECT_EQ(absl::c_count(Ask(&Stub::ServerMetadata, {}).extensions(), "model_repository"),
                is_open && takes ? 1 : 0);
    }
    server_ = nullptr;
  }
}

TEST_F(ExtensionsTest, AModelThatIsNotThereIsNotReady) {
  Start();
  inference::ModelReadyRequest request;
  request.set_name("nope");
  EXPECT_FALSE(Ask(&Stub::ModelReady, request).ready());
  EXPECT_TRUE(status_.ok());
  request.set_name("echo");
  request.set_version("9");
  EXPECT_FALSE(Ask(&Stub::ModelReady, request).ready());
  EXPECT_TRUE(status_.ok());
  request.set_version("x");
  Ask(&Stub::ModelReady, request);
  EXPECT_EQ(status_.error_code(), StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tilewire::service
