// SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads that clients ask for, up to the loader, which a test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "service/models/model_control.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

// Remembers what it is asked for, and ends it when the test says so.
class RecordedControl final : public ModelControl {
 public:
  void Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
            std::vector<UploadedFile> uploaded, Done done) override {
    loaded = name;
    given = std::move(config);
    files = std::move(uploaded);
    done_ = std::move(done);
    asked.Notify();
  }
  void Unload(const std::string& name, Done done) override {
    unloaded = name;
    done(absl::OkStatus());
  }
  int64_t MostUploadBytes() const override { return most_bytes; }
  bool TakesRequests() const override { return true; }
  void End(const absl::Status& status) { done_(status); }

  std::string loaded, unloaded;
  std::shared_ptr<const inference::ModelConfig> given;
  std::vector<UploadedFile> files;
  int64_t most_bytes = 0;
  absl::Notification asked;

 private:
  Done done_;
};

class ModelLoadsTest : public ServedFixture {
 protected:
  using LoadStub = inference::GRPCInferenceService::Stub;

  // Calls a method of the stub; `status_` is its status.
  template <typename Request, typename Response>
  void Ask(grpc::Status (LoadStub::*method)(grpc::ClientContext*, const Request&, Response*),
           const Request& request) {
    grpc::ClientContext context;
    Response response;
    status_ = (stub_.get()->*method)(&context, request, &response);
  }

  grpc::Status status_;
};

TEST_F(ModelLoadsTest, ALoadIsAnsweredWhenItHasEnded) {
  RecordedControl control;
  options_.open_rights.Open(Right::kRepository);
  Start();
  server_->SetModelControl(&control);
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  (*load.mutable_parameters())["config"].set_string_param(R"({"maxBatchSize": 4})");
  std::thread client([&] { Ask(&LoadStub::RepositoryModelLoad, load); });
  control.asked.WaitForNotification();
  // Meanwhile others are served.
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
  control.End(absl::FailedPreconditionError("it is broken"));
  client.join();
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status_.error_message(), "failed to load 'echo': it is broken");
  EXPECT_EQ(control.loaded, "echo");
  ASSERT_NE(control.given, nullptr);
  EXPECT_EQ(control.given->max_batch_size(), 4);
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("echo");
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(true);
  Ask(&LoadStub::RepositoryModelUnload, unload);
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(control.unloaded, "echo");
}

TEST_F(ModelLoadsTest, ALoadWhoseClientLeavesGoesOn) {
  RecordedControl control;
  options_.open_rights.Open(Right::kRepository);
  Start();
  server_->SetModelControl(&control);
  grpc::ClientContext context;
  std::thread leaves([&] {
    control.asked.WaitForNotification();
    context.TryCancel();
  });
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  inference::RepositoryModelLoadResponse response;
  EXPECT_EQ(stub_->RepositoryModelLoad(&context, load, &response).error_code(),
            grpc::StatusCode::CANCELLED);
  leaves.join();
  control.End(absl::OkStatus());
}

TEST_F(ModelLoadsTest, LoadsAreRefusedWithTheReason) {
  Start();
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  inference::RepositoryModelUnloadRequest unload;
  Ask(&LoadStub::RepositoryModelUnload, unload);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status_.error_message(), ::testing::HasSubstr("--open_rights"));
}

TEST_F(ModelLoadsTest, FilesOfAModelComeWithItsSettings) {
  RecordedControl control;
  control.most_bytes = 10;
  options_.open_rights.Open(Right::kRepository);
  Start();
  server_->SetModelControl(&control);
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  (*load.mutable_parameters())["file:07/model.onnx"].set_bytes_param("12345");
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status_.error_message(), ::testing::HasSubstr("'config'"));
  (*load.mutable_parameters())["config"].set_string_param("{}");
  (*load.mutable_parameters())["file:7/a.data"].set_bytes_param("12345");
  std::thread client([&] { Ask(&LoadStub::RepositoryModelLoad, load); });
  control.asked.WaitForNotification();
  control.End(absl::OkStatus());
  client.join();
  ASSERT_EQ(control.files.size(), 2u);
  for (const UploadedFile& file : control.files) {
    EXPECT_EQ(file.version, 7);
    EXPECT_EQ(file.bytes, "12345");
  }
  (*load.mutable_parameters())["file:7/b.data"].set_bytes_param("1");
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status_.error_message(), ::testing::HasSubstr("--max_upload_mb"));
}

TEST_F(ModelLoadsTest, NamesOfFilesLeadNowhereElse) {
  RecordedControl control;
  control.most_bytes = 10;
  options_.open_rights.Open(Right::kRepository);
  Start();
  server_->SetModelControl(&control);
  const std::string long_name = "file:1/" + std::string(129, 'a');
  for (const std::string& name :
       {std::string("file:"), std::string("file:model.onnx"), std::string("file:1/"),
        std::string("file:1/."), std::string("file:1/.."), std::string("file:1/../model.onnx"),
        std::string("file:../1/model.onnx"), std::string("file:/etc/passwd"),
        std::string("file:1//model.onnx"), std::string("file:1/a/model.onnx"),
        std::string("file:-1/model.onnx"), std::string("file:1/a b"), std::string("file:1/a\\b"),
        std::string("file:1/a\0b", 10), std::string("file:1/\xc3\xa4"),
        std::string("file:99999999999999999999/a"), long_name}) {
    inference::RepositoryModelLoadRequest load;
    load.set_model_name("echo");
    (*load.mutable_parameters())["config"].set_string_param("{}");
    (*load.mutable_parameters())[name].set_bytes_param("x");
    Ask(&LoadStub::RepositoryModelLoad, load);
    EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  (*load.mutable_parameters())["config"].set_string_param("{}");
  (*load.mutable_parameters())["file:1/a"].set_bytes_param("x");
  (*load.mutable_parameters())["file:01/a"].set_bytes_param("x");
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_THAT(status_.error_message(), ::testing::HasSubstr("the same file"));
  EXPECT_FALSE(control.asked.HasBeenNotified());
}

TEST_F(ModelLoadsTest, ParametersOfLoadsAreJudgedByName) {
  RecordedControl control;
  options_.open_rights.Open(Right::kRepository);
  Start();
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("echo");
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << "nothing loads models";
  server_->SetModelControl(&control);
  const struct {
    const char *name, *text, *error;
    grpc::StatusCode code;
  } cases[] = {
      {"config", "{", "JSON", grpc::StatusCode::INVALID_ARGUMENT},
      {"config", R"({"no_such_field": 1})", "JSON", grpc::StatusCode::INVALID_ARGUMENT},
      {"confg", "{}", "unknown", grpc::StatusCode::INVALID_ARGUMENT},
      {"file:1/model.onnx", "x", "no files", grpc::StatusCode::PERMISSION_DENIED},
  };
  for (const auto& [name, text, error, code] : cases) {
    load.clear_parameters();
    (*load.mutable_parameters())[name].set_string_param(text);
    Ask(&LoadStub::RepositoryModelLoad, load);
    EXPECT_EQ(status_.error_code(), code) << name;
    EXPECT_THAT(status_.error_message(), ::testing::HasSubstr(error));
  }
  load.clear_parameters();
  (*load.mutable_parameters())["config"].set_string_param(std::string(70'000, ' '));
  Ask(&LoadStub::RepositoryModelLoad, load);
  EXPECT_THAT(status_.error_message(), ::testing::HasSubstr("70000 bytes"));
  EXPECT_EQ(control.loaded, "");
}

}  // namespace
}  // namespace tilewire::service
