// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

TEST(ConvolutionTest, FewChannelsStayInBlocks) {
  for (const cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    const Explanation plan =
        Subject(network::FindNetwork("FewChannels"), Options(isa, 1)).model->Explain({}).value();
    for (const PlanStep& step : plan.steps)
      EXPECT_NE(step.remark, "another layout is wanted") << step.node;
  }
}

// Winograd's convolutions compute a pooling along the way, others leave it to a step of its own.
// Both give the same bits.
TEST(ConvolutionTest, FusedPoolingIsOneStepWithWinogradAndGivesTheBitsOfTwo) {
  for (const cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    const Subject fused(network::PooledConvolutions, Options(isa, 1));
    const Subject apart(network::ConvolutionsAndPoolings, Options(isa, 1));
    std::map<std::string, PlanStep> steps;
    const Explanation plan = fused.model->Explain({}).value();
    for (const PlanStep& step : plan.steps) steps[step.node] = step;
    const bool has_winograd = isa != cpu::Isa::kBaseline;
    EXPECT_EQ(steps.count("winograd.pool"), has_winograd ? 0 : 1);
    EXPECT_EQ(steps["winograd"].fused, has_winograd ? "relu:0;max_pooling:2x2" : "relu:0");
    EXPECT_EQ(steps["winograd"].operations, 2 * 40 * 16 * 9 * (has_winograd ? 28 * 30 : 29 * 31));
    for (const char* node : {"full.pool", "one.pool", "small.pool"})
      EXPECT_EQ(steps[node].primitive, "pooling") << node;
    const auto got = fused.Run(kImages, Layout::kNchw, Layout::kNchw);
    const auto want = apart.Run(kImages, Layout::kNchw, Layout::kNchw);
    ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_TRUE(BytesOf((*got)[i]) == BytesOf((*want)[i])) << cpu::IsaName(isa) << ", " << i;
  }
}

// The first sum's addend is also the source of the convolution and must be copied; the second sum
// writes over its addend.
TEST(ConvolutionTest, FusedSumsCopyOnlyWhereTheyMust) {
  int copies = 0;
  const Subject subject(network::FindNetwork("Residual"), Options(cpu::BestIsa(), 1));
  const Explanation plan = subject.model->Explain({}).value();
  for (const PlanStep& step : plan.steps) {
    if (step.remark.find("copies the addend") == std::string::npos) continue;
    EXPECT_EQ(step.node, "one");
    ++copies;
  }
  EXPECT_EQ(copies, 1);
}

}  // namespace
}  // namespace tilewire::testing
