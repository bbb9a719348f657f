// SPDX-License-Identifier: Apache-2.0
//
// With the precision bf16, tensors between convolutions are bf16, but not those that a model
// returns: a model that returns all of them gives the same bits with tensors of f32.
#include <string>
#include <vector>

#include "engine/base/precision.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;

constexpr int kChainImages = 3, kChainImageElements = 64 * 14 * 14;

// Convolutions whose sources are read where they lie, copied for overlapping windows, and copied
// for each pixel.
std::string ChainOfConvolutions(bool returns_all) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64, 14, 14}).Floats("w1", {96, 64, 1, 1}).Floats("w2", {64, 96, 3, 3});
  model.Floats("w3", {112, 64, 3, 3}).Floats("w4", {64, 112, 1, 1}).Floats("w5", {64, 64, 1, 1});
  model.Node("Conv", {"x", "w1"}, {"c1"}).Node("Relu", {"c1"}, {"r1"});
  model.Node("Conv", {"r1", "w2"}, {"c2"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Conv", {"c2", "w3"}, {"c3"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Conv", {"c3", "w4"}, {"c4"}, {Ints("strides", {2, 2})});
  model.Node("Conv", {"c4", "w5"}, {"y"}).Output("y");
  if (returns_all) model.Output("r1").Output("c2").Output("c3").Output("c4");
  const std::string path = ::testing::TempDir() + (returns_all ? "/all.onnx" : "/last.onnx");
  WriteFile(path, model.Serialize());
  return path;
}

std::shared_ptr<const Model> InBf16(const std::string& path, int threads) {
  const auto engine = Engine::Create({.threads = threads, .precision = Precision::kBf16});
  if (!engine.ok()) return nullptr;
  const auto model = (*engine)->LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

// The types of src and dst of the convolutions, in order.
std::vector<std::string> TypesOfTensors(const Model& model) {
  const auto plan = model.Explain({.batch = kChainImages});
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> types;
  for (const PlanStep& step : plan->steps) {
    if (step.primitive != "convolution") continue;
    EXPECT_EQ(step.implementation, "convolution/amx_bf16_planes");
    std::string both;
    for (const PlanTensor& tensor : step.tensors) {
      if (tensor.argument == "src" || tensor.argument == "dst")
        both += tensor.layout.substr(0, tensor.layout.find(':')) + " ";
    }
    types.push_back(both);
  }
  return types;
}

std::string FirstAnswer(const Model& model, int first, int count) {
  std::vector<float> images(kChainImages * kChainImageElements);
  for (size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 10007) / 10007 - 0.5f;
  const std::string bytes(
      reinterpret_cast<const char*>(images.data() + first * kChainImageElements),
      count * kChainImageElements * sizeof(float));
  const auto outputs = model.Run({{Dims{count, 64, 14, 14}, Layout::kNchw, {bytes}}}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return "";
  const auto& answer = (*outputs)[0].bytes;
  return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

TEST(Bf16TensorsModelsTest, TensorsOfBf16GiveTheBitsOfTensorsOfF32) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto f32 = InBf16(ChainOfConvolutions(/*returns_all=*/true), 1);
  ASSERT_NE(f32, nullptr);
  EXPECT_THAT(TypesOfTensors(*f32),
              ElementsAre("f32 f32 ", "f32 f32 ", "f32 f32 ", "f32 f32 ", "f32 f32 "));
  const std::string expected = FirstAnswer(*f32, 0, kChainImages);
  ASSERT_FALSE(expected.empty());
  for (const int threads : {1, 2}) {
    const auto narrow = InBf16(ChainOfConvolutions(/*returns_all=*/false), threads);
    ASSERT_NE(narrow, nullptr);
    EXPECT_THAT(TypesOfTensors(*narrow),
                ElementsAre("f32 bf16 ", "bf16 bf16 ", "bf16 bf16 ", "bf16 bf16 ", "bf16 f32 "));
    EXPECT_TRUE(FirstAnswer(*narrow, 0, kChainImages) == expected);
    const size_t size = expected.size() / kChainImages;
    for (int image = 0; image < kChainImages; ++image)
      EXPECT_TRUE(FirstAnswer(*narrow, image, 1) == expected.substr(image * size, size));
  }
}

}  // namespace
}  // namespace tilewire::testing
