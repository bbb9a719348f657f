// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Turned parts of a tensor are views, which products follow by their strides, and so is the result
// that a transpose reads.
TEST(IntegerMatmulTest, ReadsAndWritesViews) {
  const Subject subject(network::FindNetwork("QuantizedProducts"), Options(cpu::BestIsa(), 1));
  const Explanation plan = subject.model->Explain({.batch = 2}).value();
  std::vector<std::string> primitives;
  for (const PlanStep& step : plan.steps)  // but those of inputs and outputs
    if (!step.primitive.empty()) primitives.emplace_back(step.primitive);
  EXPECT_THAT(primitives, UnorderedElementsAre("quantize", "quantize", "matmul", "matmul", "matmul",
                                               "quantize", "quantize"));
}

// Numbers in row-major order, read in that order, are not turned where they are integers between.
TEST(IntegerMatmulTest, IntegersThatNoConvolutionReadsStayInTheirOrder) {
  const Subject subject(network::FindNetwork("QuantizedShares"), Options(cpu::BestIsa(), 1));
  const Explanation plan = subject.model->Explain({.batch = 2}).value();
  std::vector<std::string> primitives;
  for (const PlanStep& step : plan.steps)
    if (!step.primitive.empty()) primitives.emplace_back(step.primitive);
  EXPECT_THAT(primitives, Contains("integer_sum"));
  EXPECT_THAT(primitives, Not(Contains("reorder")));
}

}  // namespace
}  // namespace tilewire::testing
