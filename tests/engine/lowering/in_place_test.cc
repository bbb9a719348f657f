// SPDX-License-Identifier: Apache-2.0
//
// Which steps write over their source: over what the plan has computed, not over a request.
#include <memory>

#include "engine/lowering/lowering.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"

namespace tilewire::lowering {
namespace {

class InPlaceTest : public ::testing::Test {
 protected:
  // `network` has one input.
  void Plan(const network::Network& network) {
    LoweringContext context;
    runtime::PackedWeights weights(&cache_, context.options);
    context.cache = &cache_;
    context.weights = &weights;
    plan_ = LowerNetwork(network, context).value();
  }

  // Whether the step that writes the network's only output reads it too.
  bool IsInPlace() const {
    int uses = 0;
    for (const runtime::Binding& binding : plan_->steps.back().bindings)
      uses += binding.buffer == plan_->outputs[0].buffer;
    return uses == 2;
  }

  PrimitiveCache cache_{int64_t{8} << 20};
  std::shared_ptr<const runtime::Plan> plan_;
};

TEST_F(InPlaceTest, ARequestIsReadWhereItCame) {
  network::NetworkBuilder b;
  const network::ValueId x = b.Input("x", {1, 4, 8, 8});
  Plan(b.Finish({b.Elementwise("first", x, {EltwiseAlgorithm::kTanh})}));
  EXPECT_FALSE(plan_->inputs[0].overwritten);
  EXPECT_FALSE(IsInPlace());
}

TEST_F(InPlaceTest, WhatThePlanComputedIsOverwritten) {
  network::NetworkBuilder b;
  const network::ValueId x = b.Input("x", {1, 4, 8, 8});
  const network::ValueId first = b.Elementwise("first", x, {EltwiseAlgorithm::kTanh});
  Plan(b.Finish({b.Elementwise("second", first, {EltwiseAlgorithm::kAbs})}));
  EXPECT_TRUE(IsInPlace());
}

// Channel blocks are the plan's own copy of a request.
TEST_F(InPlaceTest, AnInputInBlocksIsOverwritten) {
  if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks avx512";
  network::NetworkBuilder b;
  const network::ValueId x = b.Input("x", {1, 32, 8, 8});
  const network::ValueId convolved = b.Conv("convolved", x, 32);
  Plan(b.Finish({b.Elementwise("y", x, {EltwiseAlgorithm::kAbs}), convolved}));
  ASSERT_FALSE(plan_->inputs[0].desc.IsPlain());
  EXPECT_TRUE(plan_->inputs[0].overwritten);
}

}  // namespace
}  // namespace tilewire::lowering
