// SPDX-License-Identifier: Apache-2.0
//
// Settings of models: those that are understood are applied, the others are refused by name.
#include "service/models/model_config.h"

#include <gmock/gmock.h>

#include "service/models/repository_scan.h"
#include "tests/service/served_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

class ModelConfigTest : public ServedFixture {
 protected:
  std::filesystem::path config() const { return directory_ / "echo/config.pbtxt"; }

  absl::StatusOr<inference::ModelConfig> Read(const std::string& text) {
    WriteFile(config(), text);
    return ReadModelConfig(config().string(), "echo");
  }
};

TEST_F(ModelConfigTest, WithoutAFileNothingIsSet) {
  const auto read = ReadModelConfig(config().string(), "echo");
  ASSERT_THAT(read.status(), IsOk());
  EXPECT_EQ(ModelFile(*read, "net.onnx"), "net.onnx");
  EXPECT_EQ(LabelsFile(*read), "labels.txt");
  EXPECT_THAT(WantedVersions(*read, {1, 2, 7}), ElementsAre(1, 2, 7));
}

TEST_F(ModelConfigTest, WhatIsNotUnderstoodIsRefusedByName) {
  const struct {
    const char *text, *named;
  } cases[] = {
      {"dynamic_batching { }", "dynamic_batching"},
      {"instance_group [ { count: 2 kind: KIND_GPU } ]", "instance_group"},
      {"max_batch_size: 8\nmodel_warmup { }", "line 2"},
      {"name: 'other'", "name: 'other' is not 'echo'"},
      {"platform: 'tensorflow_savedmodel'", "platform"},
      {"backend: 'python'", "backend"},
      {"max_batch_size: -1", "max_batch_size"},
      {"default_model_filename: '../../etc/passwd'", "default_model_filename"},
      {"input { name: 'image' format: FORMAT_NHWC }", "FORMAT_NHWC"},
      {"output { name: 'a' label_filename: '/etc/passwd' }", "label_filename"},
      {"output [ { label_filename: 'a' }, { label_filename: 'b' } ]", "label_filename"},
      {"parameters { key: 'precision' value { string_value: 'half' } }",
       "parameters 'precision': unknown precision 'half'; allowed are: exact, fast, bf16"},
      {"parameters { key: 'precision' value { } }", "parameters 'precision'"},
      {"parameters { key: 'threads' value { string_value: '2' } }", "parameters 'threads'"},
      {"max_batch_size: many", "line 1"},
      {"\xff\xfe", "line 1"},
  };
  for (const auto& test : cases) {
    const absl::Status status = Read(test.text).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, test.named)) << test.text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(directory_.string())));
  }
  EXPECT_THAT(Read(std::string(70'000, ' ')).status(),
              StatusIs(absl::StatusCode::kOutOfRange, "65536"));
}

TEST_F(ModelConfigTest, ThePolicyChoosesVersions) {
  const auto wanted = [this](const std::string& policy) {
    return WantedVersions(Read("version_policy { " + policy + " }").value(), {1, 2, 7});
  };
  EXPECT_THAT(wanted("all { }"), ElementsAre(1, 2, 7));
  EXPECT_THAT(wanted("latest { }"), ElementsAre(7));
  EXPECT_THAT(wanted("latest { num_versions: 2 }"), ElementsAre(2, 7));
  EXPECT_THAT(wanted("latest { num_versions: 9 }"), ElementsAre(1, 2, 7));
  EXPECT_THAT(wanted("specific { versions: [ 7, 1, 5 ] }"), ElementsAre(1, 7));
}

TEST_F(ModelConfigTest, DeclaredTensorsAreTheModels) {
  const std::function<void()> nothing;
  const tilewire::testing::FakeModel model(&nothing);
  const auto check = [&](const std::string& text) {
    return CheckSignature(Read(text).value(), model.signature());
  };
  EXPECT_THAT(check("input { name: 'row' data_type: TYPE_FP32 dims: [ -1, 5 ] }"), IsOk());
  EXPECT_THAT(check("max_batch_size: 8 input { name: 'row' dims: [ 5 ] }"), IsOk());
  EXPECT_THAT(check("input { name: 'none' }"),
              StatusIs(absl::StatusCode::kInvalidArgument, "input 'none'"));
  EXPECT_THAT(check("input { name: 'row' dims: [ 5 ] }"),
              StatusIs(absl::StatusCode::kInvalidArgument, "input 'row'"));
  EXPECT_THAT(check("output { name: 'row_out' data_type: TYPE_INT8 dims: [ -1, 5 ] }"),
              StatusIs(absl::StatusCode::kInvalidArgument, "output 'row_out'"));
}

TEST_F(ModelConfigTest, APrecisionOfItsOwnReachesTheEngineAndIsTold) {
  EXPECT_EQ(PrecisionOf(Read("").value()), std::nullopt);
  const char* const text = "parameters { key: 'precision' value { string_value: 'bf16' } }";
  EXPECT_EQ(PrecisionOf(Read(text).value()), Precision::kBf16);
  Start();
  EXPECT_EQ(engine_.loaded_precision(), Precision::kBf16);
  grpc::ClientContext context;
  inference::ModelMetadataRequest request;
  request.set_name("echo");
  inference::ModelMetadataResponse response;
  ASSERT_TRUE(stub_->ModelMetadata(&context, request, &response).ok());
  EXPECT_EQ(response.properties().at("precision"), "bf16");
}

TEST_F(ModelConfigTest, AServedModelFollowsItsSettings) {
  WriteFile(config(),
            "max_batch_size: 2 default_model_filename: 'net.onnx' version_policy { latest { } }\n"
            "output { name: 'row_out' label_filename: 'names.txt' }");
  WriteFile(directory_ / "echo/2/net.onnx", "");
  WriteFile(directory_ / "echo/2/model.onnx", "broken");
  WriteFile(directory_ / "echo/names.txt", "first\n");
  Start();
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  EXPECT_EQ(models_->Find("echo", "").value()->labels, "first\n");
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
  inference::ModelInferRequest large = GoodRequest();
  large.mutable_inputs(1)->set_shape(0, 3);
  large.set_raw_input_contents(1, Floats(15));
  const grpc::Status status = Infer(large, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("max_batch_size"));
}

TEST_F(ModelConfigTest, AModelWhoseSettingsAreRefusedIsNotServedAndSaysWhy) {
  WriteFile(config(), "dynamic_batching { }");
  Start();
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(GoodRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("dynamic_batching"));
  EXPECT_THAT(status.error_message(), Not(HasSubstr(directory_.string())));
}

}  // namespace
}  // namespace tilewire::service
