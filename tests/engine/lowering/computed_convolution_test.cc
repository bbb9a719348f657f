// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

TEST(ComputedConvolutionTest, WeightsArePackedInEveryRunAndThePlanSaysSo) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const Subject subject(network::FindNetwork("ComputedWeights"), Options(cpu::Isa::kAvx2, 1));
  const Explanation plan = subject.model->Explain({}).value();
  int packed = 0;
  for (const PlanStep& step : plan.steps)
    packed += step.remark == "packs weights that are computed, in every run";
  EXPECT_EQ(packed, 5) << "one each for dense, grouped, single, one and two";
}

}  // namespace
}  // namespace tilewire::testing
