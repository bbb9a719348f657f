// SPDX-License-Identifier: Apache-2.0
//
// A model of convolutions, a residual sum, an inner product and a product of computed matrices, on
// matrix tiles and in every precision: what serves it, how large its errors are, and that the
// answer for an image has the same bits in any batch, on any number of threads and whatever the
// other images hold.
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <set>
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

constexpr int kImages = 4, kImageElements = 32 * 16 * 16;

std::string ModelPath() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 32, 16, 16});
  model.Floats("w1", {64, 32, 1, 1}).Floats("w2", {64, 64, 3, 3}).Floats("b2", {64});
  model.Floats("w3", {64, 64, 1, 1}).Floats("w4", {64, 64, 3, 3}).Floats("w5", {64, 40});
  model.Integers("rows", {0, 64, 64});
  model.Node("Conv", {"x", "w1"}, {"c1"}).Node("Relu", {"c1"}, {"r1"});
  model.Node("Conv", {"r1", "w2", "b2"}, {"c2"},
             {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1})});
  model.Node("Conv", {"c2", "w3"}, {"c3"}).Node("Add", {"c3", "c2"}, {"s"});
  model.Node("Conv", {"s", "w4"}, {"c4"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Reshape", {"c4", "rows"}, {"m"}).Node("Relu", {"m"}, {"t"});
  model.Node("MatMul", {"t", "m"}, {"p"}).Node("MatMul", {"p", "w5"}, {"y"}).Output("y");
  const std::string path = ::testing::TempDir() + "/precision.onnx";
  WriteFile(path, model.Serialize());
  return path;
}

std::vector<float> Images() {
  std::vector<float> images(kImages * kImageElements);
  for (size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(i * 7919 % 10007) / 10007 - 0.5f;
  return images;
}

// The answer for `count` images from `first` on.
std::vector<float> AnswerFor(const Model& model, const std::vector<float>& images, int first,
                             int count) {
  const std::string bytes(reinterpret_cast<const char*>(images.data() + first * kImageElements),
                          count * kImageElements * sizeof(float));
  const auto outputs = model.Run({{Dims{count, 32, 16, 16}, Layout::kNchw, {bytes}}}, {}, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  std::vector<float> answer((*outputs)[0].bytes.size() / sizeof(float));
  std::memcpy(answer.data(), (*outputs)[0].bytes.data(), answer.size() * sizeof(float));
  return answer;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Relative, of all results (L2).
double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, magnitude = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - b[i], 2);
    magnitude += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(error / magnitude);
}

struct PrecisionCase {
  Precision precision;
  double error;                 // of the whole model
  std::set<std::string> serve;  // on tiles
};

void PrintTo(const PrecisionCase& c, std::ostream* out) {
  *out << std::string(PrecisionName(c.precision));
}

class PrecisionModelsTest : public ::testing::TestWithParam<PrecisionCase> {};

TEST_P(PrecisionModelsTest, AnswersAreTheirImagesOwn) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const std::string path = ModelPath();
  std::vector<float> images = Images();
  const auto vectors = Engine::Create({.max_isa = cpu::Isa::kAvx512, .threads = 1});
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  const std::vector<float> expected = AnswerFor(**(*vectors)->LoadModel(path), images, 0, kImages);
  std::vector<float> together;
  for (int threads : {1, 2}) {
    const auto engine = Engine::Create({.threads = threads, .precision = GetParam().precision});
    ASSERT_TRUE(engine.ok()) << engine.status();
    const auto loaded = (*engine)->LoadModel(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const Model& model = **loaded;
    const std::vector<float> answer = AnswerFor(model, images, 0, kImages);
    if (together.empty()) together = answer;
    EXPECT_TRUE(SameBits(answer, together));
    EXPECT_LE(Difference(answer, expected), GetParam().error);
    const size_t size = answer.size() / kImages;
    for (int image = 0; image < kImages; ++image) {
      const std::vector<float> own(answer.begin() + image * size,
                                   answer.begin() + (image + 1) * size);
      EXPECT_TRUE(SameBits(AnswerFor(model, images, image, 1), own)) << image;
    }
    std::vector<float> with_infinity = images;
    with_infinity[kImageElements + 100] = std::numeric_limits<float>::infinity();
    const std::vector<float> others = AnswerFor(model, with_infinity, 0, kImages);
    for (size_t i = 0; i < answer.size(); ++i) {
      if (i / size != 1) {
        ASSERT_EQ(others[i], answer[i]) << i;
      }
    }
  }
}

TEST_P(PrecisionModelsTest, TilesServeWhatIsFasterOnThem) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto engine = Engine::Create({.threads = 1, .precision = GetParam().precision});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto model = (*engine)->LoadModel(ModelPath());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = (*model)->Explain({.batch = 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::set<std::string> serve;
  for (const PlanStep& step : plan->steps) {
    if (step.primitive == "convolution" || step.primitive == "inner_product" ||
        step.primitive == "matmul")
      serve.insert(step.implementation);
  }
  EXPECT_THAT(serve, ::testing::IsSupersetOf(GetParam().serve));
}

INSTANTIATE_TEST_SUITE_P(
    Precisions, PrecisionModelsTest,
    ::testing::Values(
        PrecisionCase{
            Precision::kExact, 2e-6, {"inner_product/avx512_f32", "matmul/amx_f32_split6_planes"}},
        PrecisionCase{Precision::kFast,
                      2e-5,
                      {"convolution/amx_f32_split3_planes", "inner_product/amx_f32_split3_planes",
                       "matmul/amx_f32_split3_planes"}},
        PrecisionCase{Precision::kBf16,
                      2e-2,
                      {"convolution/amx_bf16_planes", "inner_product/amx_bf16_planes",
                       "matmul/amx_bf16_planes"}}));

}  // namespace
}  // namespace tilewire::testing
