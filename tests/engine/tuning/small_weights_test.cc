// SPDX-License-Identifier: Apache-2.0
//
// Tunings on CPUs whose products of bytes come in pairs of 16 bits: those with AVX2, or AVX-512,
// and without VNNI. Their integers are small, and ordinary elsewhere.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/cpu/isa.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/tuner.h"
#include "engine/tuning/byte_weights.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/tuned_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Engine> EngineOf(cpu::Isa isa) {
  return Engine::Create({.max_isa = isa, .threads = 1}).value();
}

// The residual model with all layers int8, tuned by an engine.
TuningResult TunedBy(Engine* engine) {
  const Examples made = MakeExamples(4);
  TuningSpec spec = SpecOf("l2<=1");
  spec.may_stay_exact = false;
  return Tune(engine, WriteResidualModel(), made.examples, spec).value();
}

// The largest magnitude of each tensor of s8 weights in a file.
std::vector<int> LargestOf(const std::string& file) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(file));
  std::vector<int> largest;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::INT8 || !absl::StrContains(tensor.name(), "_s8"))
      continue;
    int most = 0;
    for (char element : tensor.raw_data())
      most = std::max(most, std::abs(int{static_cast<int8_t>(element)}));
    largest.push_back(most);
  }
  return largest;
}

// How many convolutions and products rest on small weights.
int PairedSteps(const Model& model) {
  int count = 0;
  const Explanation explanation = model.Explain({}).value();
  for (const PlanStep& step : explanation.steps) {
    count += std::any_of(step.tensors.begin(), step.tensors.end(), [](const auto& tensor) {
      return absl::StrContains(tensor.layout, ":within64");
    });
  }
  return count;
}

TEST(SmallWeightsTest, AreThoseOfCpusWithoutVnni) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const auto engine = EngineOf(cpu::Isa::kAvx2);
  const TuningResult result = TunedBy(engine.get());
  EXPECT_THAT(LargestOf(result.model), AllOf(::testing::SizeIs(5), Each(64)));
  const auto tuning = tuning::ParseTuning(result.tuning).value();
  for (const tuned::TunedLayer& layer : tuning.layer()) EXPECT_EQ(layer.largest_weight(), 64);
  for (const TunedNode& node : result.nodes)
    EXPECT_THAT(node.reason, HasSubstr("its weights are within 64"));
  // The tuning alone gives the same bytes, whatever CPU applies it.
  const Opened opened = Open(ResidualModel().Serialize());
  std::map<std::string, Precision> precisions;
  EXPECT_EQ(tuning::ApplyTuning(tuning, *opened.source, &precisions).value(), result.model);
}

TEST(SmallWeightsTest, GiveTheSameBitsOnEveryCpu) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const auto avx2 = EngineOf(cpu::Isa::kAvx2);
  const std::string path = ::testing::TempDir() + "/small_weights.onnx";
  WriteFile(path, TunedBy(avx2.get()).model);
  const auto paired = avx2->LoadModel(path).value();
  EXPECT_EQ(PairedSteps(*paired), 5);
  const std::vector<float> bits = FloatsOf(*paired, kResidualInput);
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx512, cpu::BestIsa()}) {
    if (!cpu::Supports(isa)) continue;
    SCOPED_TRACE(cpu::IsaName(isa));
    const auto engine = EngineOf(isa);
    const auto model = engine->LoadModel(path).value();
    const bool has_dots = isa.Includes(cpu::Isa::kAvx2Vnni) || isa.Includes(cpu::Isa::kAvx512Vnni);
    EXPECT_EQ(PairedSteps(*model), isa.Includes(cpu::Isa::kAvx2) && !has_dots ? 5 : 0);
    // Other sums than those of bytes may be added in another order.
    const std::vector<float> others = FloatsOf(*model, kResidualInput);
    ASSERT_EQ(others.size(), bits.size());
    for (size_t i = 0; i < bits.size(); ++i) EXPECT_NEAR(others[i], bits[i], 1e-4f) << i;
  }
}

// Weights of 8 bits, of whatever file, are multiplied as before.
TEST(SmallWeightsTest, OthersAreWidened) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const Opened opened = Open(ResidualModel().Serialize());
  EXPECT_EQ(opened.layers[0].largest_weight, 127);
  tuning::QdqWriter writer(*opened.source, opened.layers);
  const std::string path = ::testing::TempDir() + "/large_weights.onnx";
  WriteFile(path, writer
                      .Write(tuning::Precisions(5, TunedPrecision::kInt8),
                             ParamsFor(*opened.source, {"x", "pooled", "first_r", "sum_r", "flat"}))
                      .value());
  const auto engine = EngineOf(cpu::Isa::kAvx2);
  EXPECT_EQ(PairedSteps(*engine->LoadModel(path).value()), 0);
}

TEST(SmallWeightsTest, DepthwiseLayersAndCpusWithVnniHaveNoUseForThem) {
  OnnxBuilder model(13);
  model.Input("x", {1, 8, 4, 4}).Floats("w", {8, 1, 3, 3}).Floats("v", {8, 8, 1, 1});
  model.Node("Conv", {"x", "w"}, {"a"}, {Int("group", 8)}).Node("Conv", {"a", "v"}, {"y"});
  const Opened opened = Open(model.Output("y").Serialize());
  const auto largest_for = [&](cpu::Isa isa) {
    std::vector<tuning::Layer> layers = opened.layers;
    tuning::FitWeightsTo(isa, *opened.source, &layers);
    return std::vector<int>{layers[0].largest_weight, layers[1].largest_weight};
  };
  EXPECT_THAT(largest_for(cpu::Isa::kBaseline), ElementsAre(127, 127));
  EXPECT_THAT(largest_for(cpu::Isa::kAvx2), ElementsAre(127, 64));
  EXPECT_THAT(largest_for(cpu::Isa::kAvx512), ElementsAre(127, 64));
  EXPECT_THAT(largest_for(cpu::Isa::kAvx2Vnni), ElementsAre(127, 127));
  EXPECT_THAT(largest_for(cpu::Isa::kAvx512Vnni), ElementsAre(127, 127));
  EXPECT_THAT(largest_for(cpu::Isa::kAmx), ElementsAre(127, 127));
}

// They read one channel, too, but of one group: their products come in pairs. So do those of groups
// of one input and more outputs.
TEST(SmallWeightsTest, FirstLayersOnGreyPicturesAreNotDepthwise) {
  OnnxBuilder model(13);
  model.Input("x", {1, 1, 9, 9}).Floats("w", {8, 1, 5, 5}).Floats("v", {16, 1, 3, 3});
  model.Node("Conv", {"x", "w"}, {"a"}).Node("Conv", {"a", "v"}, {"y"}, {Int("group", 8)});
  const Opened opened = Open(model.Output("y").Serialize());
  std::vector<tuning::Layer> layers = opened.layers;
  ASSERT_EQ(layers.size(), 2u);
  tuning::FitWeightsTo(cpu::Isa::kAvx2, *opened.source, &layers);
  EXPECT_EQ(layers[0].largest_weight, 64);
  EXPECT_EQ(layers[1].largest_weight, 64);
}

// The kernels decide what is multiplied in pairs, and a tuning has to make it so.
TEST(SmallWeightsTest, AreAsSmallAsTheKernelsNeedThem) {
  EXPECT_EQ(tuning::kLargestPaired, kPairBound);
  const Opened opened = Open(ResidualModel().Serialize());
  for (const cpu::NamedIsa& named : cpu::kNamedIsas) {
    const cpu::Isa isa = named.isa;
    std::vector<tuning::Layer> layers = opened.layers;
    tuning::FitWeightsTo(isa, *opened.source, &layers);
    const bool gains =
        isa.Includes(cpu::Isa::kAvx2) && !jit::VectorUnit::Of(isa).has_dot_products();
    EXPECT_EQ(layers[0].largest_weight, gains ? kPairBound : 127) << named.name;
  }
}

}  // namespace
}  // namespace tilewire::testing
