// SPDX-License-Identifier: Apache-2.0
//
// A quantised model that quantize.py made, through the facade, against what torch gives for the
// same graph of quantising pairs. The environment variable TILEWIRE_TEST_MODEL names it: a folder
// beside this file.
#include <algorithm>
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

template <typename T>
std::vector<T> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> elements(file ? static_cast<size_t>(file.tellg()) / sizeof(T) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(elements.data()), elements.size() * sizeof(T));
  return elements;
}

class QuantizedTest : public ::testing::Test {
 protected:
  static std::string Name() { return std::getenv("TILEWIRE_TEST_MODEL"); }
  static std::string PathOf(absl::string_view file) {
    return absl::StrCat("tests/models/", Name(), "/", file);
  }

  void SetUp() override {
    auto engine = Engine::Create({.threads = 2});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    auto model = engine_->LoadModel(PathOf("1/model.onnx"));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  std::vector<float> Run(const std::vector<float>& images, int64_t batch, Layout layout) {
    Dims dims = model_->signature().inputs[0].dims;
    dims[0] = batch;
    const std::vector<float> bytes = layout == Layout::kNhwc ? ChannelsLast(images, dims) : images;
    const InputTensor input{dims, layout, {BytesOf(bytes)}};
    auto outputs = model_->Run({&input, 1}, {}, {});
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? FloatsOf(outputs->front().bytes) : std::vector<float>();
  }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<const Model> model_;
};

TEST_F(QuantizedTest, AgreesWithTorchWithTheSameBitsForBothLayouts) {
  for (int64_t batch : {1, 3, 8}) {
    const auto images = ReadAll<float>(PathOf(absl::StrCat("input_", batch, ".f32")));
    const auto want = ReadAll<float>(PathOf(absl::StrCat("output_", batch, ".f32")));
    const std::vector<float> got = Run(images, batch, Layout::kNchw);
    const double error = RelativeL2(got, want);
    RecordProperty(absl::StrCat("relative_l2_", batch), absl::StrCat(error));
    EXPECT_LE(error, 1e-2) << "batch " << batch;
    EXPECT_TRUE(BytesOf(got) == BytesOf(Run(images, batch, Layout::kNhwc)));
  }
}

TEST_F(QuantizedTest, EveryImageHasTheBitsItHasAlone) {
  const auto images = ReadAll<float>(PathOf("input_8.f32"));
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

// Every convolution and inner product is one of integers, and none a reference.
TEST_F(QuantizedTest, FoldsIntoIntegers) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const Explanation plan = model_->Explain({}).value();
  int products = 0;
  for (const PlanStep& step : plan.steps) {
    EXPECT_FALSE(absl::EndsWith(step.implementation, "/reference")) << step.node;
    if (!absl::StartsWith(step.implementation, "convolution/") &&
        !absl::StartsWith(step.implementation, "inner_product/"))
      continue;
    ++products;
    EXPECT_TRUE(absl::StrContains(step.implementation, "u8s8"))
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
}  // namespace tilewire
