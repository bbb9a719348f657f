// SPDX-License-Identifier: Apache-2.0
//
// A whole torchvision model against what torch computed for the same images.
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/models/exported_model.h"

namespace tilewire::testing {
namespace {

class TorchvisionTest : public ExportedModelTest {};

TEST_F(TorchvisionTest, AgreesWithTorchWithTheSameBitsForBothLayouts) {
  const Dims& dims = model_->signature().inputs[0].dims;
  ASSERT_EQ(dims, (Dims{-1, 3, dims.back(), dims.back()}));
  ExpectTorchsOutputs(1e-4);
}

TEST_F(TorchvisionTest, EveryImageHasTheBitsItHasAlone) { ExpectTheBitsOfImagesAlone(); }

// No step is a reference; and where nothing is reshaped on the way, blocked layouts flow from the
// first convolution to the last.
TEST_F(TorchvisionTest, NoReferenceAndReordersAtTheEdgesOnly) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const bool is_resnet = absl::StartsWith(Name(), "resnet");
  const Explanation plan = model_->Explain({}).value();
  for (const PlanStep& step : plan.steps) {
    if (absl::StartsWith(step.node, "input ")) continue;
    EXPECT_FALSE(is_resnet && step.primitive == "reorder") << step.node << ": " << step.remark;
    EXPECT_FALSE(step.is_reference) << step.node << ": " << step.remark;
  }
}

}  // namespace
}  // namespace tilewire::testing
