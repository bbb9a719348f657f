// SPDX-License-Identifier: Apache-2.0
//
// Losses of classes (engine/onnx/ops/activations/loss.cc): weights, labels that are ignored, and
// how they are summed up.
#include <cmath>
#include <limits>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// The result of `op` for three of two classes, of class weights 2 and 0.5 if these are asked for.
std::vector<Elements> LossOf(const std::string& op, const Elements& x, const Elements& labels,
                             bool has_weights, std::vector<onnx::AttributeProto> attributes) {
  OnnxBuilder model(13);
  model.Input("x", {3, 2}).Input("t", {3}, onnx::TensorProto::INT64).Floats("w", {2}, {2, 0.5f});
  const bool gives_shares = op == "SoftmaxCrossEntropyLoss";
  model.Node(op, {"x", "t", has_weights ? "w" : ""},
             gives_shares ? std::vector<std::string>{"y", "p"} : std::vector<std::string>{"y"},
             std::move(attributes));
  model.Output("y");
  if (gives_shares) model.Output("p");
  return Computed(model, {{3, 2}, {3}}, {x, labels});
}

const Elements kLogarithms = {-1, -2, -3, -4, -5, -6};

Elements NegativeLogLikelihood(bool has_weights, std::vector<onnx::AttributeProto> attributes,
                               const Elements& labels = {0, 1, 0},
                               const Elements& x = kLogarithms) {
  return LossOf("NegativeLogLikelihoodLoss", x, labels, has_weights, std::move(attributes))[0];
}

TEST(LossTest, WeightsAndReductions) {
  const onnx::AttributeProto none = String("reduction", "none"), sum = String("reduction", "sum");
  ExpectNear(NegativeLogLikelihood(false, {none}), {1, 4, 5});
  ExpectNear(NegativeLogLikelihood(false, {sum}), {10});
  ExpectNear(NegativeLogLikelihood(false, {}), {10.0 / 3});
  ExpectNear(NegativeLogLikelihood(true, {none}), {2, 2, 10});
  ExpectNear(NegativeLogLikelihood(true, {sum}), {14});
  ExpectNear(NegativeLogLikelihood(true, {String("reduction", "mean")}), {14 / 4.5});
}

// Such a label may be no class, and what stands there may be anything.
TEST(LossTest, LabelsThatAreIgnored) {
  const onnx::AttributeProto none = String("reduction", "none"), other = Int("ignore_index", -1);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Elements labels = {0, -1, 0}, x = {-1, -2, -kInfinite, -4, -5, -6};
  ExpectNear(NegativeLogLikelihood(false, {none, other}, labels, x), {1, 0, 5});
  ExpectNear(NegativeLogLikelihood(false, {other}, labels, x), {3});
  ExpectNear(NegativeLogLikelihood(true, {none, other}, labels, x), {2, 0, 10});
  ExpectNear(NegativeLogLikelihood(true, {other}, labels, x), {3});
  ExpectNear(NegativeLogLikelihood(true, {Int("ignore_index", 0)}), {4});
}

TEST(LossTest, LogarithmsOfSharesComeOutToo) {
  const double half = std::log(0.5), most = -std::log1p(1 / std::exp(1.0));
  const std::vector<Elements> computed =
      LossOf("SoftmaxCrossEntropyLoss", {5, 5, 1, 2, -3, -3}, {0, 1, 1}, false, {});
  ASSERT_EQ(computed.size(), 2u);
  ExpectNear(computed[0], {-(half + most + half) / 3});
  ExpectNear(computed[1], {half, half, most - 1, most, half, half});
}

TEST(LossTest, LabelsOfPixels) {
  OnnxBuilder model(13);
  model.Input("x", {1, 2, 1, 2}).Input("t", {1, 1, 2}, onnx::TensorProto::INT32);
  model.Node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"}, {String("reduction", "none")});
  model.Output("y");
  EXPECT_EQ(Computed(model, {{1, 2, 1, 2}, {1, 1, 2}}, {{-1, -2, -3, -4}, {1, 0}})[0],
            (Elements{3, 2}));
}

TEST(LossTest, Refusals) {
  ExpectInvalid({{"another",
                  "SoftmaxCrossEntropyLoss",
                  {"x", "m"},
                  {String("reduction", "max")},
                  "reduction 'max'"},
                 {"early", "NegativeLogLikelihoodLoss", {"x", "m"}, {}, "opset 12", 11}});
}

}  // namespace
}  // namespace tilewire::reader
