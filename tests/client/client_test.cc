// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

class ClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  FakeServer server_{&service_};
  std::unique_ptr<Client> client_ = server_.NewClient();
};

TEST_F(ClientTest, MetadataHasShapesAndLabels) {
  const auto metadata = client_->Metadata("echo");
  ASSERT_THAT(metadata, IsOk());
  EXPECT_THAT(metadata->inputs[0].shape, ElementsAre(-1, 3, 4, 5));
  EXPECT_THAT(metadata->versions, ElementsAre("1"));
  EXPECT_THAT(metadata->Labels(), ElementsAre("zero", "one", "two"));
}

TEST_F(ClientTest, AllOutputsAsksForALayoutOnlyWhereThereIsOne) {
  const auto metadata = client_->Metadata("echo");
  ASSERT_THAT(metadata, IsOk());
  const auto outputs = AllOutputs(*metadata, Layout::kNhwc);
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_EQ(outputs[0].layout, Layout::kNchw);
  EXPECT_EQ(outputs[1].layout, Layout::kNhwc);
}

TEST_F(ClientTest, InferSendsRawBytesAndLayoutAndReadsThemBack) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor input = Tensor::FromFloats("x", {1, 2, 1, 3}, values, Layout::kNhwc);
  service_.edit = [](int, const inference::ModelInferRequest& request, auto*) {
    EXPECT_EQ(request.inputs(0).parameters().at("layout").string_param(), "nhwc");
    EXPECT_FALSE(request.inputs(0).has_contents());
    return grpc::Status::OK;
  };
  const auto result = client_->Infer(
      "echo", {input}, {.outputs = {{"map", Layout::kNhwc}, {"scores"}}, .id = "seven"});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->id, "seven");
  EXPECT_EQ(result->Find("map")->layout, Layout::kNhwc);
  EXPECT_EQ(result->Find("scores")->layout, Layout::kNchw);
  EXPECT_EQ(*result->Find("map")->Floats(), values);
  EXPECT_EQ(result->Find("nothing"), nullptr);
}

TEST_F(ClientTest, ServersErrorsKeepCodeAndMessage) {
  EXPECT_THAT(client_->Metadata("other"),
              StatusIs(absl::StatusCode::kNotFound, "no model 'other'"));
  EXPECT_THAT(client_->ListModels(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(ClientTest, AnswerWithoutRawContentsIsAnErrorNotACrash) {
  service_.edit = [](int, const auto&, inference::ModelInferResponse* response) {
    response->clear_raw_output_contents();
    return grpc::Status::OK;
  };
  const auto result =
      client_->Infer("echo", {Tensor::FromFloats("x", {1}, {1.0f})}, {.outputs = {{"scores"}}});
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kInternal, "raw contents"));
}

TEST_F(ClientTest, DeadlineEndsACall) {
  const auto result = client_->Infer("echo", {Tensor::FromFloats("x", {1}, {1.0f})},
                                     {.deadline = -absl::Seconds(1)});
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ClientTest, HealthFollowsTheServer) {
  EXPECT_THAT(client_->Health("", absl::Seconds(5)), IsOk());
  server_.server()->GetHealthCheckService()->SetServingStatus("model", false);
  EXPECT_THAT(client_->Health("model", absl::Seconds(5)),
              StatusIs(absl::StatusCode::kUnavailable, "'model' is not serving"));
  EXPECT_THAT(client_->Health(std::string(150, 'n'), absl::Seconds(5)),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(Connect, SaysWhereNobodyAnswers) {
  EXPECT_THAT(Client::Connect("127.0.0.1:1", {.timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kUnavailable, "127.0.0.1:1"));
}

TEST(TensorFloats, RefusesOtherTypesAndBrokenSizes) {
  Tensor tensor{"t", "INT32", {1}, Layout::kNchw, "1234"};
  EXPECT_THAT(tensor.Floats(), StatusIs(absl::StatusCode::kFailedPrecondition));
  tensor.datatype = "FP32";
  EXPECT_THAT(tensor.Floats(), IsOk());
  tensor.bytes = "123";
  EXPECT_THAT(tensor.Floats(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace tilewire::client
