// SPDX-License-Identifier: Apache-2.0
//
// Settings of models: applied, without effect and named, or refused with the reason.
#include "service/models/model_config.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
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

  absl::StatusOr<ModelSettings> Read(const std::string& text) {
    WriteFile(config(), text);
    return ReadSettings(config().string(), "echo");
  }
  inference::ModelConfig Config(const std::string& text) { return Read(text).value().config; }
  absl::Status VerdictOn(const std::string& text, bool strict = false) {
    ABSL_ASSIGN_OR_RETURN(const ModelSettings read, Read(text));
    return Verdict(read.settings, strict);
  }
};

TEST_F(ModelConfigTest, WithoutAFileNothingIsSet) {
  const auto read = ReadSettings(config().string(), "echo");
  ASSERT_THAT(read.status(), IsOk());
  EXPECT_TRUE(read->settings.empty());
  EXPECT_EQ(ModelFile(read->config, "net.onnx"), "net.onnx");
  EXPECT_EQ(LabelsFile(read->config, ""), "");
  EXPECT_THAT(WantedVersions(read->config, {1, 2, 7}, 0), ElementsAre(1, 2, 7));
  EXPECT_THAT(WantedVersions(read->config, {1, 2, 7}, 1), ElementsAre(7));
}

TEST_F(ModelConfigTest, WhatWouldChangeAnswersIsRefusedWithTheReason) {
  const struct {
    const char *text, *named;
  } cases[] = {
      {"sequence_batching { }", "sequence_batching: every request stands alone"},
      {"ensemble_scheduling { }", "ensemble_scheduling: ensembles are not supported yet"},
      {"batch_input { kind: BATCH_ELEMENT_COUNT }", "batch_input: "},
      {"batch_output { }", "batch_output: "},
      {"input { name: 'a' allow_ragged_batch: true }", "input.allow_ragged_batch: "},
      {"input { name: 'a' is_shape_tensor: true }", "input.is_shape_tensor: "},
      {"model_transaction_policy { decoupled: true }", "decoupled: every request has one answer"},
      {"model_operations { op_library_filename: 'a.so' }", "model_operations: "},
      {"model_repository_agents { agents { name: 'a' } }", "model_repository_agents: "},
      {"name: 'other'", "name: 'other' is not 'echo'"},
      {"platform: 'tensorflow_savedmodel'", "platform: 'tensorflow_savedmodel' is not 'onnx'"},
      {"backend: 'python'", "backend: 'python' is not"},
      {"max_batch_size: -1", "max_batch_size: it is below 0"},
      {"default_model_filename: '../../etc/passwd'", "default_model_filename"},
      {"output { name: 'a' label_filename: '/etc/passwd' }", "output.label_filename"},
      {"input [ { name: 'a' }, { name: 'a' } ]", "input: 'a': declared twice"},
      {"output { name: 'a' dims: [ -2 ] }", "output: 'a': a dim is below -1"},
      {"parameters { key: 'precision' value { string_value: 'half' } }",
       "parameters 'precision': unknown precision 'half'; allowed are: exact, fast, bf16"},
      {"parameters { key: 'precision' value { } }", "parameters 'precision'"},
      {"parameters { key: 'percision' value { string_value: 'bf16' } }",
       "parameters 'percision': no parameter is called so; is 'precision' meant?"},
      {"parameters { key: 'canary' value { string_value: '2:5%' } }",
       "parameters 'canary': not supported yet"},
  };
  for (const auto& test : cases) {
    const absl::Status status = VerdictOn(test.text);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, test.named)) << test.text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(directory_.string())));
  }
  EXPECT_THAT(VerdictOn("backend: 'python' model_operations { }"),
              StatusIs(absl::StatusCode::kInvalidArgument, "; model_operations: "));
}

TEST_F(ModelConfigTest, WhatIsNoConfigIsRefusedWithItsLine) {
  EXPECT_THAT(VerdictOn("max_batch_size: many"),
              StatusIs(absl::StatusCode::kInvalidArgument, "config.pbtxt, line 1"));
  EXPECT_THAT(VerdictOn("\xff\xfe"), StatusIs(absl::StatusCode::kInvalidArgument, "line 1"));
  EXPECT_THAT(VerdictOn(std::string(70'000, ' ')),
              StatusIs(absl::StatusCode::kOutOfRange, "65536"));
}

TEST_F(ModelConfigTest, WhatHasNoEffectIsAcceptedAndNamed) {
  const struct {
    const char *text, *named;
  } cases[] = {
      {"instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] } ]", "instance_group"},
      {"dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }",
       "dynamic_batching"},
      {"optimization { graph { level: 1 } eager_batching: true }", "optimization"},
      {"optimization { priority: PRIORITY_MAX }", "optimization, optimization.priority"},
      {"response_cache { enable: true }", "response_cache"},
      {"metric_tags { key: 'team' value: 'vision' }", "metric_tags"},
      {"model_transaction_policy { decoupled: false }", "model_transaction_policy"},
      {"cc_model_filenames { key: '7.5' value: 'a.plan' }", "cc_model_filenames"},
      {"parameters { key: 'intra_op_thread_count' value { string_value: '4' } }",
       "parameters 'intra_op_thread_count'"},
  };
  for (const auto& test : cases) {
    const auto read = Read(test.text);
    ASSERT_THAT(read.status(), IsOk()) << test.text;
    EXPECT_THAT(Verdict(read->settings, /*strict=*/true), IsOk()) << test.text;
    EXPECT_EQ(SettingsRemark(read->settings), absl::StrCat("no effect: ", test.named));
  }
}

TEST_F(ModelConfigTest, ANameBesideAFlagsHasNoEffect) {
  WriteFile(config(), "name: 'other' platform: 'onnx'");
  const auto read = ReadSettings(config().string(), "echo", NamedBy::kFlag);
  ASSERT_THAT(read.status(), IsOk());
  EXPECT_THAT(Verdict(read->settings, /*strict=*/true), IsOk());
  EXPECT_EQ(SettingsRemark(read->settings), "no effect: name");
  EXPECT_EQ(read->settings[0].text, "the flag names it 'echo'");
}

TEST_F(ModelConfigTest, AnUnknownNameIsAWarningOrIfAskedAnError) {
  for (const char* text : {"fps: 3", "input { name: 'a' fps: 3 }", "fps { deep { deeper: 'x' } }",
                           "parameters { key: 'fps' value { string_value: '3' } }"}) {
    const auto read = Read(text);
    ASSERT_THAT(read.status(), IsOk()) << text;
    EXPECT_THAT(SettingsRemark(read->settings), HasSubstr("unknown: ")) << text;
    EXPECT_THAT(SettingsRemark(read->settings), HasSubstr("fps")) << text;
    EXPECT_THAT(Verdict(read->settings, /*strict=*/false), IsOk()) << text;
    EXPECT_THAT(Verdict(read->settings, /*strict=*/true),
                StatusIs(absl::StatusCode::kInvalidArgument, "fps"))
        << text;
  }
}

TEST_F(ModelConfigTest, ThePolicyChoosesVersions) {
  const auto wanted = [this](const std::string& policy) {
    return WantedVersions(Config("version_policy { " + policy + " }"), {1, 2, 7}, 2);
  };
  EXPECT_THAT(wanted(""), ElementsAre(2, 7));
  EXPECT_THAT(wanted("all { }"), ElementsAre(1, 2, 7));
  EXPECT_THAT(wanted("latest { }"), ElementsAre(7));
  EXPECT_THAT(wanted("latest { num_versions: 2 }"), ElementsAre(2, 7));
  EXPECT_THAT(wanted("latest { num_versions: 9 }"), ElementsAre(1, 2, 7));
  EXPECT_THAT(wanted("specific { versions: [ 7, 1, 5 ] }"), ElementsAre(1, 7));
}

TEST_F(ModelConfigTest, APrecisionOfItsOwnReachesTheEngineAndIsTold) {
  EXPECT_EQ(PrecisionOf(Config("")), std::nullopt);
  const char* const text = "parameters { key: 'precision' value { string_value: 'bf16' } }";
  EXPECT_EQ(PrecisionOf(Config(text)), Precision::kBf16);
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
  EXPECT_THAT(models_->Find("echo", "").value()->output_labels, ElementsAre("", "first\n"));
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
  WriteFile(config(), "sequence_batching { }");
  Start();
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(GoodRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("sequence_batching"));
  EXPECT_THAT(status.error_message(), Not(HasSubstr(directory_.string())));
}

TEST_F(ModelConfigTest, ClientsSeeAndKeepToNarrowedAndReshapedTensors) {
  WriteFile(config(),
            "max_batch_size: 8\n"
            "input { name: 'image' data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 24 ]\n"
            "        reshape { shape: [ 2, 3, 4 ] } }\n"
            "output { name: 'image_out' dims: [ 4, 6 ] reshape { shape: [ 2, 3, 4 ] } }");
  Start();
  inference::ModelInferRequest request = GoodRequest();
  request.mutable_inputs(0)->clear_shape();
  for (int dim : {1, 24}) request.mutable_inputs(0)->add_shape(dim);
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(1, 4, 6));
  EXPECT_EQ(response.raw_output_contents(0), Floats(24));
  EXPECT_THAT(response.outputs(1).shape(), ElementsAre(1, 5));
  EXPECT_FALSE(Infer(GoodRequest(), &response).ok()) << "the file's own dims are not the client's";
  (*request.add_outputs()->mutable_parameters())["layout"].set_string_param("nhwc");
  request.mutable_outputs(0)->set_name("image_out");
  EXPECT_THAT(Infer(request, &response).error_message(), HasSubstr("config.pbtxt reshapes it"));
}

TEST_F(ModelConfigTest, ModelsThatAreNotThereAreNotReady) {
  Start();
  for (const auto& [name, version] : {std::pair("none", ""), {"echo", "9"}, {"bad", ""}}) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    response.set_ready(true);
    EXPECT_TRUE(stub_->ModelReady(&context, request, &response).ok()) << name;
    EXPECT_FALSE(response.ready()) << name;
  }
}

}  // namespace
}  // namespace tilewire::service
