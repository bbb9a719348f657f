// SPDX-License-Identifier: Apache-2.0
//
// A whole torchvision model through the facade, against what torch computed for the same images.
// The environment variable TILEWIRE_TEST_MODEL names it: a folder beside this file.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "gtest/gtest.h"
#include "tests/support/float_tensors.h"

namespace tilewire {
namespace {

using testing::BytesOf;
using testing::ChannelsLast;
using testing::FloatsOf;
using testing::RelativeL2;

std::string PathOf(absl::string_view file) {
  return absl::StrCat("tests/models/", std::getenv("TILEWIRE_TEST_MODEL"), "/", file);
}

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<float> floats(file ? static_cast<size_t>(file.tellg()) / sizeof(float) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(floats.data()), floats.size() * sizeof(float));
  return floats;
}

class TorchvisionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = Engine::Create({.threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    auto model = engine_->LoadModel(PathOf("1/model.onnx"));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  std::vector<float> Run(const std::vector<float>& images, int64_t batch, Layout layout) {
    const Dims dims = {batch, 3, 224, 224};
    const std::vector<float> bytes = layout == Layout::kNhwc ? ChannelsLast(images, dims) : images;
    const InputTensor input{dims, layout, {BytesOf(bytes)}};
    auto outputs = model_->Run({&input, 1}, {}, {});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? FloatsOf(outputs->front().bytes) : std::vector<float>();
  }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Model> model_;
};

TEST_F(TorchvisionTest, AgreesWithTorchWithTheSameBitsForBothLayouts) {
  for (int64_t batch : {1, 3, 8}) {
    const std::vector<float> images = ReadFloats(PathOf(absl::StrCat("input_", batch, ".f32")));
    const std::vector<float> want = ReadFloats(PathOf(absl::StrCat("output_", batch, ".f32")));
    ASSERT_EQ(images.size(), static_cast<size_t>(batch * 3 * 224 * 224));
    const std::vector<float> got = Run(images, batch, Layout::kNchw);
    EXPECT_LE(RelativeL2(got, want), 1e-4) << "batch " << batch;
    EXPECT_TRUE(BytesOf(got) == BytesOf(Run(images, batch, Layout::kNhwc)));
  }
}

TEST_F(TorchvisionTest, EveryImageHasTheBitsItHasAlone) {
  const std::vector<float> images = ReadFloats(PathOf("input_8.f32"));
  const std::vector<float> together = Run(images, 8, Layout::kNchw);
  std::vector<float> alone;
  for (int image = 0; image < 8; ++image) {
    const auto first = images.begin() + image * images.size() / 8;
    const std::vector<float> one(first, first + images.size() / 8);
    const std::vector<float> result = Run(one, 1, Layout::kNchw);
    alone.insert(alone.end(), result.begin(), result.end());
  }
  EXPECT_TRUE(BytesOf(together) == BytesOf(alone));
}

// No step is a reference; and where nothing is reshaped on the way, blocked layouts flow from the
// first convolution to the last.
TEST_F(TorchvisionTest, NoReferenceAndReordersAtTheEdgesOnly) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const bool is_resnet = absl::StartsWith(std::getenv("TILEWIRE_TEST_MODEL"), "resnet");
  const Explanation plan = model_->Explain({}).value();
  for (const PlanStep& step : plan.steps) {
    if (absl::StartsWith(step.node, "input ")) continue;
    EXPECT_FALSE(is_resnet && absl::StartsWith(step.implementation, "reorder/"))
        << step.node << ": " << step.remark;
    EXPECT_FALSE(absl::EndsWith(step.implementation, "/reference"))
        << step.node << ": " << step.remark;
  }
}

}  // namespace
}  // namespace tilewire
