// SPDX-License-Identifier: Apache-2.0
//
// Models of integers on matrix tiles: which steps the tiles serve, and that their bytes are those
// of the vector units, in any batch and on any number of threads.
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;

constexpr int kByteImages = 3, kByteImageElements = 64 * 9 * 9;

std::string Written(const OnnxBuilder& model, const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  WriteFile(path, model.Serialize());
  return path;
}

// Convolutions of each kind of tiles and a product by known weights, all of integers.
std::string QLinearModel() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64, 9, 9}).Floats("s", {}, {0.01f}).Bytes("z", {}, false, {127});
  model.Floats("ws", {}, {0.002f}).Bytes("wz", {}, true, {0}).Integers("rows", {-1, 80});
  model.Bytes("w1", {64, 64, 3, 3}, true).Bytes("w2", {80, 64, 1, 1}, true);
  model.Bytes("w3", {80, 80, 3, 3}, true).Bytes("w4", {80, 40}, true);
  const auto params = [](const std::string& src, const std::string& weights) {
    return std::vector<std::string>{src, "s", "z", weights, "ws", "wz", "s", "z"};
  };
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("QLinearConv", params("q", "w1"), {"c1"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("QLinearConv", params("c1", "w2"), {"c2"});
  model.Node("QLinearConv", params("c2", "w3"), {"c3"}, {Ints("strides", {2, 2})});
  model.Node("Transpose", {"c3"}, {"t"}, {Ints("perm", {0, 2, 3, 1})});
  model.Node("Reshape", {"t", "rows"}, {"m"});
  model.Node("QLinearMatMul", params("m", "w4"), {"p"});
  model.Node("DequantizeLinear", {"p", "s", "z"}, {"y"}).Output("y");
  return Written(model, "qlinear.onnx");
}

// A product whose rows get their scale in every run.
std::string DynamicModel() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64 * 9, 9}).Integers("rows", {-1, 192}).Bytes("w", {192, 72}, true);
  model.Node("Reshape", {"x", "rows"}, {"r"});
  model.Node("DynamicQuantizeLinear", {"r"}, {"q", "s", "z"});
  model.Node("MatMulInteger", {"q", "w", "z"}, {"i"}).Floats("ws", {}, {0.01f});
  model.Node("Cast", {"i"}, {"f"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Node("Mul", {"s", "ws"}, {"step"}).Node("Mul", {"f", "step"}, {"y"}).Output("y");
  return Written(model, "dynamic.onnx");
}

std::vector<float> ImagesToQuantize() {
  std::vector<float> images(kByteImages * kByteImageElements);
  for (size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 10007) / 4003 - 1.2f;
  return images;
}

std::string BytesOf(const Model& model, Dims dims, int first) {
  const std::vector<float> images = ImagesToQuantize();
  const std::string bytes(reinterpret_cast<const char*>(images.data() + first * kByteImageElements),
                          dims[0] * kByteImageElements * sizeof(float));
  const auto outputs = model.Run({{std::move(dims), Layout::kNchw, {bytes}}}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return "";
  const auto& answer = (*outputs)[0].bytes;
  return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

std::shared_ptr<const Model> Loaded(const std::string& path, int threads, cpu::Isa max_isa) {
  const auto engine = Engine::Create({.max_isa = max_isa, .threads = threads});
  if (!engine.ok()) return nullptr;
  const auto model = (*engine)->LoadModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

std::vector<std::string> ProductsServedBy(const Model& model) {
  const auto plan = model.Explain({.batch = kByteImages});
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> rows;
  for (const PlanStep& step : plan->steps) {
    if (step.primitive == "convolution" || step.primitive == "inner_product" ||
        step.primitive == "matmul")
      rows.push_back(step.implementation);
  }
  return rows;
}

class IntegerModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  }
};

TEST_F(IntegerModelsTest, QLinearOperatorsGiveTheBytesOfVectorUnits) {
  const std::string path = QLinearModel();
  const auto vectors = Loaded(path, 1, cpu::Isa::kAvx512Vnni);
  ASSERT_NE(vectors, nullptr);
  const std::string expected = BytesOf(*vectors, {kByteImages, 64, 9, 9}, 0);
  ASSERT_FALSE(expected.empty());
  for (const int threads : {1, 2}) {
    const auto model = Loaded(path, threads, cpu::BestIsa());
    ASSERT_NE(model, nullptr);
    EXPECT_THAT(ProductsServedBy(*model),
                ElementsAre("convolution/amx_u8s8_direct", "convolution/amx_u8s8_direct",
                            "convolution/amx_u8s8_direct", "inner_product/amx_u8s8"));
    EXPECT_TRUE(BytesOf(*model, {kByteImages, 64, 9, 9}, 0) == expected);
    const size_t size = expected.size() / kByteImages;
    for (int image = 0; image < kByteImages; ++image)
      EXPECT_TRUE(BytesOf(*model, {1, 64, 9, 9}, image) == expected.substr(image * size, size));
  }
}

TEST_F(IntegerModelsTest, DynamicallyQuantizedRowsGiveTheBytesOfVectorUnits) {
  const std::string path = DynamicModel();
  const Dims dims = {kByteImages, 64 * 9, 9};
  const auto vectors = Loaded(path, 1, cpu::Isa::kAvx512Vnni);
  ASSERT_NE(vectors, nullptr);
  const std::string expected = BytesOf(*vectors, dims, 0);
  ASSERT_FALSE(expected.empty());
  for (const int threads : {1, 2}) {
    const auto model = Loaded(path, threads, cpu::BestIsa());
    ASSERT_NE(model, nullptr);
    EXPECT_THAT(ProductsServedBy(*model), ElementsAre("convolution/amx_u8s8_direct"));
    EXPECT_TRUE(BytesOf(*model, dims, 0) == expected);
  }
}

}  // namespace
}  // namespace tilewire::testing
