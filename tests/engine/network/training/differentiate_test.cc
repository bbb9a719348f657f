// SPDX-License-Identifier: Apache-2.0
//
// Which operations are appended, and what is refused.
#include "engine/network/training/differentiate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/network/network_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/network/training/forward_networks.h"
#include "tests/engine/onnx/network_text.h"

namespace tilewire::testing {
namespace {

using functions::EltwiseAlgorithm;
using network::Function;
using network::kNoValue;
using network::Matmul;
using network::Network;
using network::NetworkBuilder;
using network::ValueId;
using ::testing::HasSubstr;

ValueId Named(const Network& network, const std::string& name) {
  for (size_t i = 0; i < network.values.size(); ++i) {
    if (network.values[i].name == name) return static_cast<ValueId>(i);
  }
  ADD_FAILURE() << "no value '" << name << "'";
  return kNoValue;
}

// The gradient of `value` is the input "dy".
network::GradientSeed Seed(const Network& network, ValueId value) {
  return {value, Named(network, "dy")};
}

struct Derived {
  std::vector<ValueId> gradients;
  std::string text;  // lines of what was appended, and of operations that were changed
};

// By the values of these names, of the network's first output, whose gradient is its input "dy".
Derived DerivedBy(Network network, const std::vector<std::string>& names) {
  const std::string before = reader::NetworkToText(network);
  std::vector<ValueId> by;
  for (const std::string& name : names) by.push_back(Named(network, name));
  const auto gradients = network::Differentiate({Seed(network, network.outputs[0])}, by, &network);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  if (!gradients.ok()) return {};
  network.outputs.clear();
  for (ValueId gradient : *gradients)
    if (gradient != kNoValue) network.outputs.push_back(gradient);
  EXPECT_TRUE(network::CheckNetwork(network).ok()) << network::CheckNetwork(network);
  Derived derived{*gradients, ""};
  for (absl::string_view line : absl::StrSplit(reader::NetworkToText(network), '\n'))
    if (!absl::StrContains(before, line)) absl::StrAppend(&derived.text, line, "\n");
  return derived;
}

// y = (x a) b
Network TwoProducts() {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3}), first = b.Input("a", {3, 4}),
                second = b.Input("b", {4, 5});
  b.Input("dy", {2, 5});
  b.Input("unused", {4});
  const ValueId h = b.AddOperation("h", Matmul{}, {x, first}, {2, 4});
  return b.Finish({b.AddOperation("y", Matmul{}, {h, second}, {2, 5})});
}

TEST(DifferentiateTest, OnlyWhatLeadsFromAParameterToTheLossHasAGradient) {
  EXPECT_EQ(DerivedBy(TwoProducts(), {"b"}).text,
            "gradient of b by y [4,5] = matmul_gradient_by_second(dy, h.out)\n"
            "output gradient of b by y\n");
  const Derived both = DerivedBy(TwoProducts(), {"a", "unused", "b"});
  EXPECT_EQ(both.gradients[1], kNoValue);
  EXPECT_EQ(both.text,
            "gradient of h.out by y [2,4] = matmul_gradient_by_first(dy, b)\n"
            "gradient of b by y [4,5] = matmul_gradient_by_second(dy, h.out)\n"
            "gradient of a by h [3,4] = matmul_gradient_by_second(gradient of h.out by y, x)\n"
            "output gradient of a by h\n"
            "output gradient of b by y\n");
}

TEST(DifferentiateTest, ContributionsToAValueBecomeOneSumInTheOrderOfBackward) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3});
  b.Input("dy", {2, 3});
  const ValueId r = b.Elementwise("r", x, {EltwiseAlgorithm::kRelu});
  const ValueId t = b.Elementwise("t", r, {EltwiseAlgorithm::kTanh});
  EXPECT_EQ(DerivedBy(b.Finish({b.SumOf("y", {r, t, r})}), {"x"}).text,
            "gradient of r.out by t [2,3] = activation_gradient(dy, t.out) tanh(0,0) of result\n"
            "gradient of r.out [2,3] = sum(dy, dy, gradient of r.out by t)\n"
            "gradient of x by r [2,3] = activation_gradient(gradient of r.out, r.out) relu(0,0) of "
            "result\n"
            "output gradient of x by r\n");
}

TEST(DifferentiateTest, ForwardSavesWhatBackwardReads) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  b.Input("dy", {1, 2, 2, 2});
  const Network network = b.Finish({b.MaxPool("pool", x, 2, 2, 0)});
  EXPECT_EQ(DerivedBy(network, {"x"}).text,
            "pool.out [1,2,2,2], saved by pool s32 [1,2,2,2] = max_pooling(x) kernel=[2,2] "
            "strides=[2,2]\n"
            "gradient of x by pool [1,2,4,4] = max_pooling_gradient(dy, saved by pool) "
            "kernel=[2,2] strides=[2,2]\n"
            "output gradient of x by pool\n");
}

TEST(DifferentiateTest, StatisticsOfRowsAreSaved) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3}), scale = b.Input("scale", {3});
  const ValueId shift = b.Input("shift", {3});
  b.Input("dy", {2, 3});
  const Network network = b.Finish({b.AddOperation(
      "y", network::LayerNormalization{.reads_parameters = true}, {x, scale, shift}, {2, 3})});
  const std::string forward =
      "y.out [2,3], saved by y [2], saved by y [2] = layer_normalization(x, scale, shift) "
      "epsilon=1e-05\n";
  const std::string read =
      " = layer_normalization_gradient(dy, x, saved by y, saved by y, scale) "
      "epsilon=1e-05\n";
  EXPECT_EQ(DerivedBy(network, {"x"}).text,
            forward + "gradient of x by y [2,3]" + read + "output gradient of x by y\n");
  EXPECT_EQ(DerivedBy(network, {"shift"}).gradients.size(), 1U);
}

TEST(DifferentiateTest, TheReluBeforeAMaximumMasksTheMaxima) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  b.Input("dy", {1, 2, 2, 2});
  const ValueId r = b.Elementwise("r", x, {EltwiseAlgorithm::kRelu});
  EXPECT_THAT(DerivedBy(b.Finish({b.MaxPool("pool", r, 2, 2, 0)}), {"x"}).text,
              HasSubstr("gradient of r.out by pool [1,2,2,2] = activation_gradient(dy, pool.out) "
                        "relu(0,0) of result\n"
                        "gradient of x by r [1,2,4,4] = max_pooling_gradient(gradient of r.out by "
                        "pool, saved by pool) kernel=[2,2] strides=[2,2]\n"));
}

TEST(DifferentiateTest, OtherReadersOfTheReluKeepItsGradient) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  b.Input("dy", {1, 2, 4, 4});
  const ValueId r = b.Elementwise("r", x, {EltwiseAlgorithm::kRelu});
  const ValueId pooled = b.MaxPool("pool", r, 1, 1, 0);
  EXPECT_THAT(DerivedBy(b.Finish({b.SumOf("y", {r, pooled})}), {"x"}).text,
              HasSubstr("gradient of x by r [1,2,4,4] = activation_gradient(gradient of r.out, "
                        "r.out) relu(0,0) of result\n"));
}

TEST(DifferentiateTest, ASlopeOfNegativesStaysAfterTheMaximum) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  b.Input("dy", {1, 2, 2, 2});
  const ValueId r = b.Elementwise("r", x, {EltwiseAlgorithm::kRelu, 0.5f});
  EXPECT_THAT(DerivedBy(b.Finish({b.MaxPool("pool", r, 2, 2, 0)}), {"x"}).text,
              HasSubstr("gradient of x by r [1,2,4,4] = activation_gradient("));
}

TEST(DifferentiateTest, ABiasAloneHasASumOfChannels) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4, 4}), w = b.Input("w", {5, 3, 1, 1}),
                c = b.Input("c", {5});
  b.Input("dy", {2, 5, 4, 4});
  const network::ComputedConvolution window{1, {1, 1}, {0, 0}, {0, 0}, {0, 0}};
  const Network network = b.Finish({b.AddOperation("conv", window, {x, w, c}, {2, 5, 4, 4})});
  EXPECT_EQ(DerivedBy(network, {"c"}).text,
            "conv backward [2,5,4,1] = reduce_sum(dy)\n"
            "conv backward [1,5,1,1] = reduce_sum(conv backward)\n"
            "gradient of c by conv [5] = reshape(conv backward)\n"
            "output gradient of c by conv\n");
  EXPECT_EQ(DerivedBy(network, {"c", "w"}).text,
            "gradient of w by conv [5,3,1,1], gradient of c by conv [5] = "
            "convolution_weights_gradient(dy, x)\n"
            "output gradient of c by conv\n"
            "output gradient of w by conv\n");
}

TEST(DifferentiateTest, AGradientOfADeconvolutionIsAConvolution) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4, 4}), w = b.Input("w", {3, 5, 2, 2}),
                c = b.Input("c", {5});
  b.Input("dy", {2, 5, 8, 8});
  const network::ComputedDeconvolution up{{1, {2, 2}, {0, 0}, {0, 0}, {0, 0}}};
  const Network network = b.Finish({b.AddOperation("up", up, {x, w, c}, {2, 5, 8, 8})});
  EXPECT_EQ(DerivedBy(network, {"x", "w", "c"}).text,
            "gradient of x by up [2,3,4,4] = computed_convolution(dy, w) strides=[2,2]\n"
            "gradient of w by up [3,5,2,2] = convolution_weights_gradient(x, dy) strides=[2,2]\n"
            "up backward [2,5,8,1] = reduce_sum(dy)\n"
            "up backward [1,5,1,1] = reduce_sum(up backward)\n"
            "gradient of c by up [5] = reshape(up backward)\n"
            "output gradient of x by up\n"
            "output gradient of w by up\n"
            "output gradient of c by up\n");
}

TEST(DifferentiateTest, WhatWasBroadcastIsSummed) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4}), row = b.Input("row", {4});
  b.Input("dy", {2, 3, 4});
  const Network network =
      b.Finish({b.AddOperation("y", network::Elementwise{Function::kAdd}, {x, row}, {2, 3, 4})});
  EXPECT_EQ(DerivedBy(network, {"x", "row"}).text,
            "y backward [1,1,4] = reduce_sum(dy)\n"
            "gradient of row by y [4] = reshape(y backward)\n"
            "output dy\n"
            "output gradient of row by y\n");
}

TEST(DifferentiateTest, PartsOfAConcatenationAreParts) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {1, 2, 3}), z = b.Input("z", {1, 3, 3});
  b.Input("dy", {1, 5, 3});
  EXPECT_EQ(DerivedBy(b.Finish({b.ConcatOf("y", {x, z})}), {"z"}).text,
            "gradient of z by y [1,3,3] = select(dy) 1:2 x3\n"
            "output gradient of z by y\n");
}

TEST(DifferentiateTest, TheGradientOfATransposedMatrixIsTheProductOfTheOtherOrder) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3});
  b.Input("dy", {2, 5});
  const ValueId turned = b.Transposed("turned", b.Input("w", {5, 3}), {1, 0});
  const Network network = b.Finish({b.AddOperation("y", Matmul{}, {x, turned}, {2, 5})});
  EXPECT_EQ(DerivedBy(network, {"w"}).text,
            "gradient of w by turned [5,3] = matmul_gradient_by_second(x, dy)\n"
            "output gradient of w by turned\n");
}

TEST(DifferentiateTest, MatricesThatABatchSharesAreSummed) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4}), w = b.Input("w", {1, 4, 5});
  b.Input("dy", {2, 3, 5});
  EXPECT_EQ(DerivedBy(b.Finish({b.AddOperation("y", Matmul{}, {x, w}, {2, 3, 5})}), {"w"}).text,
            "gradient of w by y [1,4,5] = matmul_gradient_by_second(dy, x)\n"
            "output gradient of w by y\n")
      << "one product over all rows";
  NetworkBuilder c;
  const ValueId v = c.Input("v", {1, 3, 4}), z = c.Input("z", {2, 4, 5});
  c.Input("dy", {2, 3, 5});
  EXPECT_EQ(DerivedBy(c.Finish({c.AddOperation("y", Matmul{}, {v, z}, {2, 3, 5})}), {"v"}).text,
            "y backward [2,3,4] = matmul_gradient_by_first(dy, z)\n"
            "gradient of v by y [1,3,4] = reduce_sum(y backward)\n"
            "output gradient of v by y\n");
}

TEST(DifferentiateTest, PartsOfASplitAreConcatenated) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 5});
  b.Input("dy", {2, 5});
  const auto part = [&](const char* name, int64_t begin, int64_t size) {
    const ValueId taken =
        b.AddOperation(name, network::Select{{{}, {{begin, 1, size}}}}, {x}, {2, size});
    return b.Elementwise(absl::StrCat(name, ".tanh"), taken, {EltwiseAlgorithm::kTanh});
  };
  const ValueId first = part("first", 0, 2), second = part("second", 2, 3);
  const std::string whole = DerivedBy(b.Finish({b.ConcatOf("y", {second, first})}), {"x"}).text;
  EXPECT_THAT(whole, HasSubstr("gradient of x [2,5] = concat(gradient of first.out by first.tanh, "
                               "gradient of second.out by second.tanh) axis=1\n"));
  EXPECT_THAT(whole, ::testing::Not(HasSubstr("fill(0)"))) << "zeros around a part";
}

TEST(DifferentiateTest, PartsThatOverlapAreAdded) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 5});
  b.Input("dy", {2, 6});
  const ValueId first = b.AddOperation("first", network::Select{{{}, {{0, 1, 3}}}}, {x}, {2, 3});
  const ValueId second = b.AddOperation("second", network::Select{{{}, {{2, 1, 3}}}}, {x}, {2, 3});
  EXPECT_THAT(DerivedBy(b.Finish({b.ConcatOf("y", {first, second})}), {"x"}).text,
              HasSubstr("gradient of x [2,5] = sum(gradient of x by second, gradient of x by "
                        "first)\n"));
}

TEST(DifferentiateTest, NothingPassesWhereAFunctionChooses) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3}), z = b.Input("z", {2, 3});
  b.Input("dy", {2, 3});
  const ValueId less =
      b.AddOperation("less", network::Elementwise{Function::kLess}, {x, z}, {2, 3});
  const Derived derived = DerivedBy(
      b.Finish({b.AddOperation("y", network::Elementwise{Function::kWhere}, {less, z, z}, {2, 3})}),
      {"x", "z"});
  EXPECT_EQ(derived.gradients[0], kNoValue);
  EXPECT_THAT(derived.text, HasSubstr("where(less.out, dy, y backward)"));
}

TEST(DifferentiateTest, AllOperationsWithoutGradientAreRefusedTogether) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4, 4}), w = b.Input("w", {2, 3, 4, 4});
  b.Input("dy", {2, 3, 4, 4});
  const ValueId rest =
      b.AddOperation("rest", network::Elementwise{Function::kMod}, {x, w}, {2, 3, 4, 4});
  const ValueId beside = b.AddOperation(
      "beside",
      network::MaxWindow{
          .kernel = {1, 1}, .strides = {1, 1}, .dilations = {0, 0}, .padding_left = {0, 0}},
      {x}, {2, 3, 4, 4});
  const ValueId top = b.AddOperation(
      "top",
      network::MaxWindow{
          .kernel = {1, 1}, .strides = {1, 1}, .dilations = {0, 0}, .padding_left = {0, 0}},
      {rest}, {2, 3, 4, 4});
  Network network = b.Finish({top, beside});
  const size_t operations = network.operations.size();
  const auto gradients = network::Differentiate({Seed(network, top)}, {x}, &network);
  EXPECT_EQ(gradients.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(gradients.status().message(),
            "node 'top': a maximum of dilated windows has no gradient; node 'rest': mod has no "
            "gradient");
  EXPECT_EQ(network.operations.size(), operations);
}

TEST(DifferentiateTest, ReasonsNameWhatIsMissing) {
  const struct {
    network::OperationParams params;
    const char* reason;
  } kCases[] = {
      {network::Elementwise{Function::kPower}, "a power has no gradient by its exponent"},
      {network::Elementwise{Function::kFloorMod}, "floor_mod has no gradient"},
  };
  for (const auto& c : kCases) {
    NetworkBuilder b;
    const ValueId x = b.Input("x", {2, 3}), z = b.Input("z", {2, 3});
    b.Input("dy", {2, 3});
    Network network = b.Finish({b.AddOperation("y", c.params, {x, z}, {2, 3})});
    const auto gradients =
        network::Differentiate({Seed(network, network.outputs[0])}, {z}, &network);
    EXPECT_THAT(std::string(gradients.status().message()),
                HasSubstr(absl::StrCat("node 'y': ", c.reason)));
  }
}

TEST(DifferentiateTest, TheLargestOfTooManyElementsHaveNoGradient) {
  const struct {
    int64_t size, taken;
    const char* reason;
  } kCases[] = {{(1 << 24) + 1, 1, "the largest of more than 16777216 elements"},
                {100'000, 10'000, "10000 results times 100000 elements; at most 268435456"}};
  for (const auto& c : kCases) {
    NetworkBuilder b;
    const ValueId x = b.Input("x", {1, c.size});
    b.Input("dy", {1, c.taken});
    Network network = b.Finish({b.AddOperation("y", network::TopK{1}, {x}, {1, c.taken})});
    const auto gradients =
        network::Differentiate({Seed(network, network.outputs[0])}, {x}, &network);
    EXPECT_THAT(std::string(gradients.status().message()), HasSubstr(c.reason));
  }
}

}  // namespace
}  // namespace tilewire::testing
