// SPDX-License-Identifier: Apache-2.0
//
// A quantised model that quantize.py made, against what torch gives for the same graph of
// quantising pairs.
#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/models/exported_model.h"

namespace tilewire::testing {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;

class QuantizedTest : public ExportedModelTest {};

TEST_F(QuantizedTest, AgreesWithTorchWithTheSameBitsForBothLayouts) { ExpectTorchsOutputs(1e-2); }

TEST_F(QuantizedTest, EveryImageHasTheBitsItHasAlone) { ExpectTheBitsOfImagesAlone(); }

// Every convolution and inner product is one of integers, and none a reference; sums and
// concatenations between them are of integers, too.
TEST_F(QuantizedTest, FoldsIntoIntegers) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const Explanation plan = model_->Explain({}).value();
  int products = 0;
  for (const PlanStep& step : plan.steps) {
    EXPECT_FALSE(step.is_reference) << step.node;
    EXPECT_NE(step.primitive, "sum") << step.node;
    EXPECT_NE(step.primitive, "eltwise") << step.node;
    if (step.primitive == "concat") {
      EXPECT_EQ(step.tensors[0].layout.substr(0, 2), "u8") << step.node;
    }
    if (step.primitive != "convolution" && step.primitive != "inner_product") continue;
    ++products;
    EXPECT_THAT(step.tensors[0].layout, AnyOf(StartsWith("u8:"), StartsWith("s8:")))
        << step.node << " " << step.implementation;
  }
  EXPECT_GT(products, 0);
}

// On the pictures that the float model was not trained on.
TEST_F(QuantizedTest, DigitsAreReadAsWell) {
  if (Name() != "digits_int8") GTEST_SKIP() << "has no labels";
  const std::string folder = "deploy/models/digits/";
  const auto bytes = ReadAll<uint8_t>(folder + "heldout/images.u8");
  const auto labels = ReadAll<uint8_t>(folder + "heldout/labels.u8");
  const auto want = ReadAll<float>(folder + "heldout/logits.f32");
  std::vector<float> images(bytes.begin(), bytes.end());
  for (float& element : images) element /= 255;
  const int64_t count = static_cast<int64_t>(labels.size());
  ASSERT_GT(count, 0);
  const std::vector<float> got = Run(images, count, Layout::kNchw);
  ASSERT_EQ(got.size(), want.size());
  const auto right = [&](const std::vector<float>& logits) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto row = logits.begin() + i * 10;
      sum += std::max_element(row, row + 10) - row == labels[i];
    }
    return sum;
  };
  RecordProperty("accuracy", absl::StrCat(static_cast<double>(right(got)) / count));
  EXPECT_GE(right(got), right(want) - count * 5 / 1000);
}

}  // namespace
}  // namespace tilewire::testing
