// SPDX-License-Identifier: Apache-2.0
//
// A trunk before all that learns becomes a network of inference, with the same numbers.
#include "engine/network/training/frozen_trunk.h"

#include <cmath>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/network/network_check.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/support/oracle/interpreter.h"

namespace tilewire::network {
namespace {

ValueId AddParameter(const std::string& name, const Dims& dims, bool learns, NetworkBuilder* b,
                     std::vector<Parameter>* parameters) {
  const ValueId value = b->Input(name, dims);
  parameters->push_back(
      {.value = value,
       .name = name,
       .initial = MakeFloats(name, dims, PseudoRandom(name, *ElementCount(dims), 0.5f, 1.5f)),
       .learns = learns});
  return value;
}

ValueId Normalized(const std::string& name, ValueId src, NetworkBuilder* b,
                   std::vector<Parameter>* parameters, bool learns) {
  const Dims channels = {b->dims(src)[1]};
  const auto scale = learns ? AddParameter(name + ".scale", channels, true, b, parameters)
                            : b->Numbers(name + ".scale", channels);
  const ValueId shift = b->Numbers(name + ".shift", channels);
  const ValueId mean = AddParameter(name + ".mean", channels, false, b, parameters);
  const ValueId variance = AddParameter(name + ".variance", channels, false, b, parameters);
  return b->AddOperation(name, BatchNormalization{1e-3f, /*uses_given_statistics=*/true},
                         {src, scale, shift, mean, variance}, b->dims(src));
}

// Two frozen layers with a branch around the second one; what learns reads both, the input, and a
// normalization of which the scale learns.
Network WithTrunk() {
  NetworkBuilder b;
  std::vector<Parameter> parameters;
  const ValueId x = b.Input("x", {2, 3, 6, 5});
  const ValueId stem = Normalized("n1", b.Conv("stem", x, 8), &b, &parameters, false);
  const ValueId relu = b.Elementwise("relu", stem, {EltwiseAlgorithm::kRelu});
  const ValueId conv = Normalized("n2", b.Conv("conv", relu, 8), &b, &parameters, false);
  const ValueId sum =
      b.Elementwise("relu2", b.SumOf("sum", {conv, relu}), {EltwiseAlgorithm::kRelu});
  const ValueId w = AddParameter("w", {4, 8, 3, 3}, true, &b, &parameters);
  const ValueId head = b.AddOperation(
      "head", ComputedConvolution{1, {1, 1}, {0, 0}, {1, 1}, {1, 1}}, {sum, w}, {2, 4, 6, 5});
  const ValueId learned = Normalized("n3", relu, &b, &parameters, true);
  const ValueId flat = b.Conv("flat", x, 4);
  Network network = b.Finish({b.SumOf("out", {head, flat}), learned, relu});
  network.inputs.resize(1);
  network.parameters = parameters;
  return network;
}

template <typename Params>
int64_t CountOf(const Network& network) {
  return absl::c_count_if(network.operations, [](const Operation& operation) {
    return std::holds_alternative<Params>(operation.params);
  });
}

TEST(FrozenTrunkTest, FoldsAndFusesWithTheSameNumbers) {
  const Network before = WithTrunk();
  Network after = before;
  RunPassesOnTrunk(&after);
  ASSERT_TRUE(CheckNetwork(after).ok()) << CheckNetwork(after);
  EXPECT_EQ(CountOf<BatchNormalization>(before), 3);
  EXPECT_EQ(CountOf<BatchNormalization>(after), 1) << "that which learns";
  EXPECT_EQ(CountOf<Convolution>(after), 3);
  EXPECT_EQ(CountOf<Activation>(after), 0);
  EXPECT_EQ(CountOf<Sum>(after), 1) << "with what learns";
  EXPECT_EQ(after.parameters.size(), before.parameters.size());
  const std::vector<float> x = PseudoRandom("x", 2 * 3 * 6 * 5, -1, 1);
  const testing::Elements input(x.begin(), x.end());
  const auto want = testing::Interpret(before, {input}), got = testing::Interpret(after, {input});
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t k = 0; k < want[i].size(); ++k)
      EXPECT_NEAR(got[i][k], want[i][k], 1e-5 * (1 + std::abs(want[i][k]))) << i << ", " << k;
  }
}

TEST(FrozenTrunkTest, ANetworkOfWhichAllLearnsStaysAsItIs) {
  NetworkBuilder b;
  std::vector<Parameter> parameters;
  const ValueId x = b.Input("x", {2, 3, 6, 5});
  const ValueId w = AddParameter("w", {4, 3, 1, 1}, true, &b, &parameters);
  const ValueId conv = b.AddOperation(
      "conv", ComputedConvolution{1, {1, 1}, {0, 0}, {0, 0}, {0, 0}}, {x, w}, {2, 4, 6, 5});
  Network network = b.Finish({b.Elementwise("relu", conv, {EltwiseAlgorithm::kRelu})});
  network.inputs.resize(1);
  network.parameters = parameters;
  RunPassesOnTrunk(&network);
  EXPECT_EQ(CountOf<Activation>(network), 1);
  EXPECT_EQ(network.operations.size(), 2);
}

}  // namespace
}  // namespace tilewire::network
