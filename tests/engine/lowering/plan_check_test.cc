// SPDX-License-Identifier: Apache-2.0
//
// A plan is as lowering makes it; with one of its numbers changed it is refused.
#include "engine/runtime/plan_check.h"

#include <functional>
#include <memory>

#include "engine/lowering/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"

namespace tilewire::lowering {
namespace {

using runtime::Plan;

// Two convolutions side by side in one tensor, which another one reads, and a literal.
network::Network SideBySide() {
  network::NetworkBuilder b;
  const network::ValueId x = b.Input("x", {1, 16, 6, 6});
  const network::ValueId a = b.Conv("a", x, 32), c = b.Conv("c", x, 32);
  const network::ValueId both = b.ConcatOf("both", {a, c});
  return b.Finish({b.Conv("y", both, 16), b.Numbers("numbers", {7})});
}

Plan MadePlan() {
  static auto* const cache = new PrimitiveCache(int64_t{8} << 20);
  LoweringContext context;
  static auto* const weights = new runtime::PackedWeights(cache, context.options);
  context.cache = cache;
  context.weights = weights;
  return *LowerNetwork(SideBySide(), context).value();
}

TEST(PlanCheckTest, TensorsLieInsideTheirMemory) {
  ASSERT_TRUE(CheckPlan(MadePlan()).ok()) << CheckPlan(MadePlan());
  const auto part = [](Plan& plan) -> runtime::PlanBuffer& {
    for (runtime::PlanBuffer& buffer : plan.buffers)
      if (buffer.part_of >= 0 && buffer.part_offset > 0) return buffer;
    ADD_FAILURE() << "no buffer is a part of another one";
    return plan.buffers[0];
  };
  const struct {
    const char* text;
    std::function<void(Plan&)> change;
  } kCases[] = {
      {"beyond its memory", [](Plan& plan) { plan.arena_bytes -= 64; }},
      {"beyond its memory", [](Plan& plan) { plan.buffers[0].offset = -64; }},
      {"beyond its memory", [&](Plan& plan) { part(plan).part_offset += 64; }},
      {"beyond its memory", [&](Plan& plan) { part(plan).part_of = 0; }},
      {"in 60 bytes", [](Plan& plan) { plan.buffers[plan.inputs[0].buffer].bytes = 60; }},
      {"is missing", [](Plan& plan) { plan.steps[0].bindings.clear(); }},
      {"no buffer", [](Plan& plan) { plan.steps[0].bindings[0].buffer = 1000; }},
      {"no buffer", [](Plan& plan) { plan.outputs[0].buffer = -1; }},
      {"not one of a primitive and bands", [](Plan& plan) { plan.steps[0].primitive = nullptr; }},
      {"no step", [](Plan& plan) { plan.inputs[0].variants.push_back({.step = 1000}); }},
      {"of a shorter scratchpad", [](Plan& plan) { plan.scratchpad_bytes = -1; }},
      {"in a shorter constant", [](Plan& plan) { plan.constants.erase(plan.constants.begin()); }},
  };
  for (const auto& c : kCases) {
    Plan plan = MadePlan();
    c.change(plan);
    const absl::Status status = CheckPlan(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(c.text));
  }
}

}  // namespace
}  // namespace tilewire::lowering
