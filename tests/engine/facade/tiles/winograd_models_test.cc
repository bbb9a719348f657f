// SPDX-License-Identifier: Apache-2.0
//
// A model whose convolutions are Winograd's on a CPU with matrix tiles: which steps they serve,
// that a pooling and a residual sum are part of them, and that the answer for an image has the same
// bits in any batch and on any number of threads.
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/float_tensors.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kSide = 56, kChannels = 64, kElements = kChannels * kSide * kSide;

std::string WinogradModelPath() {
  OnnxBuilder model(13);
  model.Input("x", {-1, kChannels, kSide, kSide});
  model.Floats("w1", {64, kChannels, 3, 3}).Floats("w2", {64, 64, 3, 3}).Floats("b2", {64});
  model.Node("Conv", {"x", "w1"}, {"c1"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Add", {"c1", "x"}, {"s"}).Node("Relu", {"s"}, {"r"});
  model.Node("Conv", {"r", "w2", "b2"}, {"c2"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Relu", {"c2"}, {"r2"});
  model.Node("MaxPool", {"r2"}, {"y"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Output("y");
  const std::string path = ::testing::TempDir() + "/winograd.onnx";
  WriteFile(path, model.Serialize());
  return path;
}

std::vector<float> PooledAnswer(const Model& model, const std::vector<float>& images) {
  const auto count = static_cast<int64_t>(images.size()) / kElements;
  const absl::string_view bytes(reinterpret_cast<const char*>(images.data()),
                                images.size() * sizeof(float));
  const auto outputs =
      model.Run({{Dims{count, kChannels, kSide, kSide}, Layout::kNchw, {bytes}}}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  return FloatsOf((*outputs)[0].bytes);
}

TEST(WinogradModelsTest, AnswersAreTheirImagesOwn) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  std::vector<float> images(2 * kElements);
  for (size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 10007) / 10007 - 0.5f;
  const std::string path = WinogradModelPath();
  const auto vectors = Engine::Create({.max_isa = cpu::Isa::kAvx512, .threads = 1});
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  const std::vector<float> expected = PooledAnswer(**(*vectors)->LoadModel(path), images);
  std::vector<float> first;
  for (int threads : {1, 2}) {
    const auto engine = Engine::Create({.threads = threads});
    ASSERT_TRUE(engine.ok()) << engine.status();
    const auto model = (*engine)->LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    const std::vector<float> answer = PooledAnswer(**model, images);
    EXPECT_LE(RelativeL2(answer, expected), 4e-6);
    if (first.empty()) first = answer;
    EXPECT_EQ(answer, first);
    const std::vector<float> own =
        PooledAnswer(**model, std::vector<float>(images.begin() + kElements, images.end()));
    EXPECT_EQ(std::vector<float>(answer.begin() + own.size(), answer.end()), own);
  }
}

TEST(WinogradModelsTest, SumsAndPoolingsArePartOfTheConvolutions) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto engine = Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto model = (*engine)->LoadModel(WinogradModelPath());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Explain({.batch = 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> fused;
  for (const PlanStep& step : plan->steps) {
    if (step.primitive != "convolution") continue;
    EXPECT_THAT(step.implementation, ::testing::EndsWith("winograd_4x3"));
    fused.push_back(step.fused);
  }
  EXPECT_EQ(fused, (std::vector<std::string>{"sum:1;relu:0", "relu:0;max_pooling:2x2"}));
}

}  // namespace
}  // namespace tilewire::testing
