// SPDX-License-Identifier: Apache-2.0
//
// Primitives that run backward over the wire: gradients, workspaces and each refusal.
#include <gmock/gmock.h>

#include <map>

#include "absl/types/span.h"
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

  struct GradientCase {
    std::string primitive;
    std::vector<GivenTensor> inputs;
    int output;
    std::vector<float> expected;
  };
  void ExpectAll(absl::Span<const GradientCase> cases) {
    for (const GradientCase& given : cases) {
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
  const std::string four = Md("1,4", "nc"), one = Md("1,1", "nc");
  const std::string prefix = absl::StrCat(" prop_kind: ", kBackwardData, " ");
  const std::string gradients = absl::StrCat(" diff_src ", four, " diff_dst ", four);
  const GradientCase cases[] = {
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
  ExpectAll(cases);
}

TEST_F(BackwardPrimitiveTest, PreluBothWays) {
  const std::string image = Md("1,2,1,2", "nchw"), slopes = Md("1,2,1,1", "nchw");
  const std::string gradients = absl::StrCat(" src ", image, " weights ", slopes, " diff_src ",
                                             image, " diff_dst ", image, "}");
  const std::string all = "prelu { prop_kind: PROP_KIND_BACKWARD",
                    unspecified = "{ dims: [1,2,1,1] type: DATA_TYPE_F32 }";
  const GivenTensor x = {1, image, {-1, 2, -3, 0}}, a = {33, slopes, {0.5, 2}};
  const GivenTensor dy = {145, image, {1, 2, 3, 4}};
  const GradientCase cases[] = {
      {absl::StrCat("prelu { src ", image, " weights ", slopes, " dst ", image, "}"),
       {x, a},
       17,
       {-0.5, 2, -6, 0}},
      {absl::StrCat("prelu { prop_kind: ", kTraining, " src ", Md("1,2,1,2", "nhwc"), " weights ",
                    unspecified, " dst ", image,
                    "} attributes { post_ops { eltwise { op { "
                    "algorithm: ELTWISE_SQUARE } } } }"),
       {x, a},
       17,
       {0.25, 4, 36, 0}},
      {all + gradients, {x, a, dy}, 129, {0.5, 2, 6, 8}},
      {all + gradients, {x, a, dy}, 161, {-1, -9}},
      {absl::StrCat("prelu { prop_kind: ", kBackwardData, gradients),
       {x, a, dy},
       129,
       {0.5, 2, 6, 8}},
  };
  Start();
  ExpectAll(cases);
  const struct {
    std::string primitive;
    grpc::StatusCode code;
    const char* says;
  } refused[] = {
      {absl::StrCat("prelu { src ", image, " dst ", image, "}"), grpc::INVALID_ARGUMENT,
       "weights: rank 0"},
      {absl::StrCat("prelu { src ", image, " weights ", Md("2", "x"), " dst ", image, "}"),
       grpc::INVALID_ARGUMENT, "weights [2] cannot be broadcast to src [1,2,1,2]"},
      {absl::StrCat("prelu { src ", image, " weights ", slopes, " dst ", slopes, "}"),
       grpc::INVALID_ARGUMENT, "dst"},
      {absl::StrCat(all, " src ", image, " weights ", slopes, " diff_src ", image, "}"),
       grpc::INVALID_ARGUMENT, "diff_dst is missing"},
      {absl::StrCat(all, " dst ", image, gradients), grpc::INVALID_ARGUMENT, "no use for it"},
      {absl::StrCat("prelu { prop_kind: PROP_KIND_BACKWARD_WEIGHTS", gradients),
       grpc::UNIMPLEMENTED, "does not run backward_weights"},
      {absl::StrCat("prelu { src { dims: 2 type: DATA_TYPE_U8 } weights ", Md("2", "x"),
                    " dst { dims: 2 type: DATA_TYPE_U8 } }"),
       grpc::UNIMPLEMENTED, "not u8"},
  };
  for (const auto& one : refused) {
    SCOPED_TRACE(one.primitive);
    v1::CreateResponse created;
    const grpc::Status status = Create(one.primitive, &created);
    EXPECT_EQ(status.error_code(), one.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(one.says));
  }
}

// The kinds with weights, and what goes over their gradients.
TEST_F(BackwardPrimitiveTest, GradientsOfProducts) {
  const std::string src = Md("1,1,1,2", "nchw"), dst = Md("1,2,1,2", "nchw");
  const std::string weights = Md("2,1,1,1", "oihw"), bias = Md("2", "x");
  const std::string window = absl::StrCat(" src ", src, " weights ", weights, " dst ", dst);
  const std::string row = Md("1,2", "nc"), matrix = Md("1,2", "oi"), one = Md("1,1", "nc");
  const std::string product = absl::StrCat(" src ", row, " weights ", matrix, " dst ", one);
  const std::string matmul = absl::StrCat(" src ", row, " weights ", Md("2,1", "nc"), " dst ", one);
  const std::string of_src = absl::StrCat(" prop_kind: ", kBackwardData);
  const std::string of_weights = " prop_kind: PROP_KIND_BACKWARD_WEIGHTS";
  const GivenTensor x = {1, src, {1, 2}}, w = {33, weights, {3, 5}}, dy = {145, dst, {1, 2, 3, 4}};
  const GivenTensor line = {1, row, {1, 2}}, scalar = {145, one, {10}};
  const GradientCase cases[] = {
      {absl::StrCat("convolution {", of_src, window, "}"), {w, dy}, 129, {18, 26}},
      {absl::StrCat("convolution {", of_weights, window, " bias ", bias, "}"),
       {x, dy},
       161,
       {5, 11}},
      {absl::StrCat("convolution {", of_weights, window, " bias ", bias, "}"),
       {x, dy},
       169,
       {3, 7}},
      {absl::StrCat("deconvolution {", of_src, window, "}"), {w, dy}, 129, {18, 26}},
      {absl::StrCat("deconvolution {", of_weights, window, "}"), {x, dy}, 161, {5, 11}},
      {absl::StrCat("inner_product {", of_src, product, "}"),
       {{33, matrix, {3, 5}}, scalar},
       129,
       {30, 50}},
      {absl::StrCat("inner_product {", of_weights, product, "}"), {line, scalar}, 161, {10, 20}},
      {absl::StrCat("matmul {", of_src, matmul, "}"),
       {{33, Md("2,1", "nc"), {3, 5}}, scalar},
       129,
       {30, 50}},
      {absl::StrCat("matmul {", of_weights, matmul, "}"), {line, scalar}, 161, {10, 20}},
      {absl::StrCat("inner_product {", of_src, product,
                    "} attributes { post_ops { sum {} } post_ops { mask { alpha: 0.5 } } }"),
       {{33, matrix, {3, 5}}, scalar, {129, row, {1, -10}}, {2, row, {0, 1}}},
       129,
       {15.5, 40}},
  };
  Start();
  ExpectAll(cases);
}

TEST_F(BackwardPrimitiveTest, GradientsOfNormalizationsAndImages) {
  const std::string four = Md("1,1,4", "ncw"), channel = Md("1", "x"), pair = Md("2,1", "nc");
  const std::string rows = Md("2,2", "nc"), row = Md("2,2", "nc"), per_row = Md("2", "x");
  const std::string all =
      " prop_kind: PROP_KIND_BACKWARD use_global_stats: true "
      "use_scale_shift: true ";
  const std::string of_src = absl::StrCat(" prop_kind: ", kBackwardData);
  const std::string gradients = absl::StrCat(" src ", four, " diff_src ", four, " diff_dst ", four);
  const std::vector<GivenTensor> normalized = {{1, four, {1, 2, 3, 4}},
                                               {49, channel, {2}},
                                               {50, channel, {4}},
                                               {33, pair, {6, 7}},
                                               {145, four, {1, 2, 3, 4}}};
  const std::vector<GivenTensor> of_rows = {{1, rows, {1, 3, 0, 4}},
                                            {49, per_row, {2, 2}},
                                            {50, per_row, {1, 4}},
                                            {33, row, {2, 4, 0, 0}},
                                            {145, rows, {1, 2, 3, 4}}};
  const std::string layer = absl::StrCat("layer_normalization {", all, " src ", rows, " diff_src ",
                                         rows, " diff_dst ", rows, "}");
  const GradientCase cases[] = {
      {absl::StrCat("batch_normalization {", all, gradients, "}"), normalized, 129, {3, 6, 9, 12}},
      {absl::StrCat("batch_normalization {", all, gradients, "}"), normalized, 161, {5, 10}},
      {layer, of_rows, 129, {2, 8, 3, 8}},
      {layer, of_rows, 161, {-4, 6, 4, 6}},
      // With alpha 0 the gradient is dy k^-beta.
      {absl::StrCat("lrn {", of_src, gradients, " local_size: 1 alpha: 0 beta: 1 k: 2 }"),
       {{1, four, {1, 2, 3, 4}}, {145, four, {2, 4, 6, 8}}},
       129,
       {1, 2, 3, 4}},
      {absl::StrCat("resampling {", of_src, " algorithm: RESAMPLING_NEAREST src ",
                    Md("1,1,2", "ncw"), " dst ", four, "}"),
       {{145, four, {1, 2, 3, 4}}},
       129,
       {3, 7}},
      {absl::StrCat("pooling {", of_src, " algorithm: POOLING_AVG_INCLUDE_PADDING src ", four,
                    " dst ", Md("1,1,2", "ncw"), " kernel: 2 strides: 2 }"),
       {{145, Md("1,1,2", "ncw"), {2, 4}}},
       129,
       {1, 1, 2, 2}},
      {absl::StrCat("shuffle {", of_src, " axis: 1 group_size: 3 src ", Md("1,6", "nc"), " dst ",
                    Md("1,6", "nc"), "}"),
       {{145, Md("1,6", "nc"), {0, 1, 2, 3, 4, 5}}},
       129,
       {0, 2, 4, 1, 3, 5}},
  };
  Start();
  ExpectAll(cases);
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
