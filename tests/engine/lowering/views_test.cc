// SPDX-License-Identifier: Apache-2.0
//
// Views of values under other dims: what they are asked for is checked, not assumed.
#include <gtest/gtest.h>

#include "engine/lowering/plan/operation_context.h"
#include "engine/lowering/plan/plan_builder.h"
#include "engine/lowering/plan/strided_view.h"
#include "engine/network/value_uses.h"
#include "engine/runtime/tensor_layout.h"
#include "tests/support/status_matchers.h"

namespace tilewire::lowering {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

TEST(StridedViewTest, RefusesDimsOfAnotherNumberOfElements) {
  const MemoryDesc desc = *runtime::PlainDesc({2, 3, 4}, DataType::kF32, /*channels_last=*/false);
  EXPECT_THAT(StridedView(desc, {6, 4}), IsOk());
  for (const Dims& dims : {Dims{2, 0, 4}, Dims{6, 2}, Dims{12, 4}, Dims{}})
    EXPECT_THAT(StridedView(desc, dims), StatusIs(absl::StatusCode::kInternal, "24 elements"));
}

TEST(OperationContextTest, RaisesRanksAndLowersNone) {
  network::Network network;
  network.values = {{"x", DataType::kF32, {3, 4}}, {"y", DataType::kF32, {3, 4}}};
  network.inputs = {0};
  network.outputs = {1};
  network.operations = {{"node", network::Reshape{}, {0}, 1}};
  const LoweringContext settings;
  PlanBuilder plan(network, {network::ValueUses(network), std::vector<bool>(2, false)}, settings);
  OperationContext context(network, network.operations[0], &plan);
  const auto raised = context.RowMajorOfRank(0, 4);
  ASSERT_THAT(raised, IsOk());
  EXPECT_EQ(raised->desc.dims(), (Dims{1, 1, 3, 4}));
  EXPECT_THAT(context.RowMajorOfRank(0, 1),
              StatusIs(absl::StatusCode::kInternal, "value 'x' [3,4] as a tensor of rank 1"));
}

}  // namespace
}  // namespace tilewire::lowering
