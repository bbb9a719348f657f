// SPDX-License-Identifier: Apache-2.0
//
// Primitives that run backward over the wire: gradients, workspaces and each refusal.
#include <gmock/gmock.h>

#include <map>

#include "tests/service/primitive_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class BackwardPrimitiveTest : public PrimitiveFixture {
 protected:
  grpc::Status CreateAfter(const std::string& primitive, const std::string& forward_id,
                           v1::CreateResponse* response) {
    grpc::ClientContext context;
    v1::CreateRequest request;
    *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(primitive);
    request.set_forward_id(forward_id);
    return stub_->Create(&context, request, response);
  }

  // All outputs of an execution, by their arguments.
  std::map<int, v1::Tensor> Run(const std::string& id, const std::vector<v1::Tensor>& inputs) {
    v1::ExecuteRequest request;
    request.set_id(id);
    for (const v1::Tensor& input : inputs) *request.add_inputs() = input;
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    std::map<int, v1::Tensor> outputs;
    for (const v1::Tensor& output : response.outputs()) outputs[output.argument()] = output;
    return outputs;
  }
};

std::string TrainedPool(absl::string_view prop_kind, absl::string_view more = "") {
  return absl::StrCat("pooling { prop_kind: ", prop_kind, " src ", Md("1,1,2,4", "nchw"), " dst ",
                      Md("1,1,1,2", "nchw"), " kernel: [2, 2] strides: [2, 2] ", more, "}");
}

constexpr char kTraining[] = "PROP_KIND_FORWARD_TRAINING";
constexpr char kBackwardData[] = "PROP_KIND_BACKWARD_DATA";

// The bytes of a workspace as a tensor that a client sends.
v1::Tensor AsInput(const v1::Tensor& workspace) {
  v1::Tensor input = workspace;
  input.mutable_desc()->clear_tag();
  return input;
}

TEST_F(BackwardPrimitiveTest, GradientsOfOneKindEach) {
  struct Case {
    std::string primitive;
    std::vector<GivenTensor> inputs;
    int output;
    std::vector<float> expected;
  };
  const std::string four = Md("1,4", "nc"), one = Md("1,1", "nc");
  const std::string prefix = absl::StrCat(" prop_kind: ", kBackwardData, " ");
  const std::string gradients = absl::StrCat(" diff_src ", four, " diff_dst ", four);
  const Case cases[] = {
      {absl::StrCat("eltwise {", prefix, "op { algorithm: ELTWISE_RELU alpha: 0.5 } src ", four,
                    gradients, "}"),
       {{1, four, {-1, 2, -3, 4}}, {145, four, {1, 2, 3, 4}}},
       129,
       {0.5, 2, 1.5, 4}},
      {absl::StrCat("softmax {", prefix, "axis: 1 algorithm: SOFTMAX_SOFTMAX dst ", four, gradients,
                    "}"),
       {{17, four, {0.25, 0.25, 0.25, 0.25}}, {145, four, {1, 2, 3, 2}}},
       129,
       {-0.25, 0, 0.25, 0}},
      {absl::StrCat("reduction {", prefix, "algorithm: REDUCTION_MEAN src ", four, " dst ", one,
                    " diff_src ", four, " diff_dst ", one, "}"),
       {{1, four, {1, 2, 3, 4}}, {145, one, {8}}},
       129,
       {2, 2, 2, 2}},
      {absl::StrCat("binary {", prefix, "algorithm: BINARY_MUL src0 ", four, " src1 ", one, " dst ",
                    four, " diff_src1 ", one, " diff_dst ", four, "}"),
       {{1, four, {1, 2, 3, 4}}, {2, one, {5}}, {145, four, {1, 1, 1, 1}}},
       130,
       {10}},
  };
  Start();
  for (const Case& given : cases) {
    SCOPED_TRACE(given.primitive);
    v1::CreateResponse created;
    const grpc::Status status = Create(given.primitive, &created);
    ASSERT_TRUE(status.ok()) << status.error_message();
    std::vector<v1::Tensor> inputs;
    for (const GivenTensor& input : given.inputs) inputs.push_back(ToMessage(input));
    const auto outputs = Run(created.id(), inputs);
    ASSERT_TRUE(outputs.contains(given.output));
    EXPECT_THAT(ValuesOf(outputs.at(given.output)), ElementsAreArray(given.expected));
    for (const v1::ArgumentDesc& argument : created.arguments())
      EXPECT_EQ(argument.written(), outputs.contains(argument.argument())) << argument.name();
  }
}

TEST_F(BackwardPrimitiveTest, AWorkspaceGoesFromForwardToBackward) {
  Start();
  v1::CreateResponse forward, backward, named;
  ASSERT_TRUE(Create(TrainedPool(kTraining), &forward).ok());
  const auto saved =
      Run(forward.id(), {ToMessage({1, Md("1,1,2,4", "nchw"), {1, 5, 2, 0, 3, 4, 7, 6}})});
  ASSERT_TRUE(saved.contains(64));
  EXPECT_EQ(saved.at(64).content().size(), 2u);
  const grpc::Status status = CreateAfter(TrainedPool(kBackwardData), forward.id(), &backward);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto gradients = Run(
      backward.id(), {ToMessage({145, Md("1,1,1,2", "nchw"), {10, 20}}), AsInput(saved.at(64))});
  ASSERT_TRUE(gradients.contains(129));
  EXPECT_THAT(ValuesOf(gradients.at(129)), ElementsAreArray({0, 10, 0, 0, 0, 0, 20, 0}));
  // The same as the descriptor that Create named.
  for (const v1::ArgumentDesc& argument : forward.arguments()) {
    if (argument.argument() != 64) continue;
    const std::string field =
        absl::StrCat("workspace { ", argument.desc().ShortDebugString(), " }");
    ASSERT_TRUE(Create(TrainedPool(kBackwardData, field), &named).ok());
    EXPECT_EQ(named.id(), backward.id());
  }
}

TEST_F(BackwardPrimitiveTest, SaysWhatDoesNotFit) {
  Start();
  v1::CreateResponse training, inference, created;
  ASSERT_TRUE(Create(TrainedPool(kTraining), &training).ok());
  ASSERT_TRUE(Create(TrainedPool("PROP_KIND_FORWARD_INFERENCE"), &inference).ok());
  const std::string eltwise = absl::StrCat(
      "eltwise { prop_kind: ", kBackwardData, " op { algorithm: ELTWISE_RELU } src ",
      Md("1,4", "nc"), " diff_src ", Md("1,4", "nc"), " diff_dst ", Md("1,4", "nc"), "}");
  const std::string unknown =
      absl::StrCat("eltwise { prop_kind: 193 op { algorithm: ELTWISE_RELU } src ", Md("1,4", "nc"),
                   " dst ", Md("1,4", "nc"), "}");
  struct Case {
    std::string primitive, forward_id;
    grpc::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {TrainedPool(kBackwardData), "", grpc::INVALID_ARGUMENT, "has to run as forward_training"},
      {TrainedPool(kBackwardData), inference.id(), grpc::INVALID_ARGUMENT,
       "has to run as forward_training"},
      {TrainedPool(kBackwardData, "padding_left: [1, 1] padding_right: [1, 1]"), training.id(),
       grpc::INVALID_ARGUMENT, ""},
      {TrainedPool(kBackwardData), "00000000000000000000000000000000", grpc::NOT_FOUND, ""},
      {TrainedPool(kTraining), training.id(), grpc::INVALID_ARGUMENT, "forward_id is for"},
      {eltwise, training.id(), grpc::INVALID_ARGUMENT, "forward_id is for"},
      {TrainedPool(kBackwardData, "workspace { dims: [2] type: DATA_TYPE_U8 tag: 'x' }"), "",
       grpc::INVALID_ARGUMENT, "not one that Create named"},
      {TrainedPool(kBackwardData,
                   "workspace { dims: [2] type: DATA_TYPE_U8 tag: 'workspace_0000000000000001' }"),
       "", grpc::INVALID_ARGUMENT, "of another problem"},
      {TrainedPool("PROP_KIND_BACKWARD_WEIGHTS"), "", grpc::INVALID_ARGUMENT, "workspace"},
      {unknown, "", grpc::INVALID_ARGUMENT, "unknown prop_kind 193"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.primitive);
    const grpc::Status status = CreateAfter(one.primitive, one.forward_id, &created);
    EXPECT_EQ(status.error_code(), one.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace tilewire::service
