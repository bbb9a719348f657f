// SPDX-License-Identifier: Apache-2.0
//
// Plans of an update: parameters and their gradients stay where they are read and computed, and
// gradients of branches add up without steps of their own.

#include "absl/strings/match.h"
#include "engine/lowering/lowering.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::lowering {
namespace {

// A convolution by the parameter "w" and both of its gradients, of which that of src is an output.
network::Network Update(int64_t outputs) {
  network::NetworkBuilder b;
  const Dims src = {2, 32, 28, 28}, dst = {2, outputs, 28, 28}, weights = {outputs, 32, 3, 3};
  const network::ComputedConvolution window{1, {1, 1}, {0, 0}, {1, 1}, {1, 1}};
  const ValueId x = b.Input("x", src), w = b.Input("w", weights);
  const ValueId y = b.AddOperation("y", window, {x, w}, dst);
  const ValueId by_src =
      b.AddOperation("by_src", network::ConvolutionDataGradient{window}, {y, w}, src);
  const ValueId by_weights =
      b.AddOperation("by_weights", network::ConvolutionWeightsGradient{window}, {y, x}, weights);
  network::Network network = b.Finish({by_src});
  network.inputs.pop_back();
  network.parameters.push_back(
      {.value = w,
       .gradient = by_weights,
       .name = "w",
       .initial = network::MakeFloats("w", weights,
                                      network::PseudoRandom("w", *ElementCount(weights), -1, 1))});
  return network;
}

int StepsOf(const runtime::Plan& plan, absl::string_view primitive) {
  int steps = 0;
  for (const runtime::Step& step : plan.steps)
    steps += absl::StartsWith(step.implementation(), primitive);
  return steps;
}

TEST(TrainingPlansTest, ParametersAndTheirGradientsStayInPackedLayouts) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (int64_t outputs : {32, 40, 21}) {
    for (ConvolutionAlgorithm algorithm :
         {ConvolutionAlgorithm::kDirect, ConvolutionAlgorithm::kWinograd}) {
      PrimitiveCache cache(int64_t{8} << 20);
      LoweringContext context;
      context.options.max_isa = cpu::Isa::kAvx2;
      context.convolution_algorithm = algorithm;
      runtime::PackedWeights weights(&cache, context.options);
      runtime::ParameterStore store(context.options);
      context.cache = &cache;
      context.weights = &weights;
      context.parameters = &store;
      const auto plan = LowerNetwork(Update(outputs), context);
      ASSERT_TRUE(plan.ok()) << plan.status();
      const bool transforms = algorithm == ConvolutionAlgorithm::kWinograd;
      EXPECT_EQ(StepsOf(**plan, "reorder/"), transforms ? 1 : 0) << outputs << " outputs";
      EXPECT_EQ(StepsOf(**plan, "convolution/"), 3);
      const int parameter = store.Find("w");
      ASSERT_NE(parameter, runtime::ParameterStore::kNone);
      EXPECT_FALSE(store.Home(parameter).IsPlain());
      EXPECT_EQ(store.gradient(parameter).size(), store.value(parameter).size());
    }
  }
}

TEST(TrainingPlansTest, GradientsOfBranchesAreAddedByTheStepsThatComputeThem) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const testing::Subject subject(network::FindNetwork("GradientsOfBranches"),
                                 testing::Options(cpu::Isa::kAvx2, 1));
  int adding = 0, sums = 0;
  const Explanation plan = subject.model->Explain({}).value();
  for (const PlanStep& step : plan.steps) {
    adding += absl::StartsWith(step.remark, "adds to the gradients before it");
    sums += absl::StartsWith(step.implementation, "sum/");
  }
  EXPECT_EQ(adding, 3) << "a, c and e";
  EXPECT_EQ(sums, 2) << "kept and mixed";
}

}  // namespace
}  // namespace tilewire::lowering
