// SPDX-License-Identifier: Apache-2.0
//
// Gradients as numbers: those that the oracle computes for the differentiated network against
// differences of the forward network's results, and the engine's against the oracle's.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"
#include "tests/engine/network/training/forward_networks.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {
namespace {

using network::Network;

std::vector<Elements> InputsOf(const Network& network) {
  std::vector<Elements> inputs;
  for (network::ValueId input : network.inputs) {
    const network::Value& value = network.values[input];
    const Tensor numbers = network::PseudoRandom(value.name, *ElementCount(value.dims), -1, 1);
    inputs.emplace_back(numbers.begin(), numbers.end());
  }
  return inputs;
}

// A sum and that of its terms' magnitudes.
struct Dot {
  double sum = 0, magnitude = 0;
};

Dot DotOf(const Elements& a, const Elements& b) {
  Dot dot;
  for (size_t i = 0; i < a.size(); ++i) {
    dot.sum += a[i] * b[i];
    dot.magnitude += std::abs(a[i] * b[i]);
  }
  return dot;
}

// The result of a network, times a seed, as a function of its inputs.
class Loss {
 public:
  Loss(const Network& forward, std::vector<Elements> inputs)
      : forward_(forward), seed_(std::move(inputs.back())), inputs_(std::move(inputs)) {
    inputs_.pop_back();
  }

  size_t inputs() const { return inputs_.size(); }
  size_t Size(size_t input) const { return inputs_[input].size(); }

  // The derivative along `direction` of an input, by a central difference, and its error: that of
  // a rounding on either side, and the next term of the series, which the difference of half the
  // step tells.
  Dot Slope(size_t input, const Elements& direction) const {
    constexpr double kStep = 0x1p-18;
    const double whole = Difference(input, direction, kStep);
    const double half = Difference(input, direction, kStep / 2);
    return {(4 * half - whole) / 3, std::abs(half - whole)};
  }

 private:
  double Difference(size_t input, const Elements& direction, double step) const {
    return (At(input, direction, step) - At(input, direction, -step)) / (2 * step);
  }

  double At(size_t input, const Elements& direction, double step) const {
    std::vector<Elements> moved = inputs_;
    for (size_t i = 0; i < direction.size(); ++i) moved[input][i] += step * direction[i];
    return DotOf(InterpretInDouble(forward_, moved)[0], seed_).sum;
  }

  const Network& forward_;
  const Elements seed_;
  std::vector<Elements> inputs_;
};

class OracleTest : public ::testing::TestWithParam<ForwardCase> {};

TEST_P(OracleTest, GradientsAreSlopesOfTheForwardNetwork) {
  const Network forward = GetParam().forward(), network = GetParam().differentiated(1);
  const std::vector<Elements> inputs = InputsOf(network);
  const std::vector<Elements> gradients = InterpretInDouble(network, inputs);
  const Loss loss(forward, inputs);
  ASSERT_EQ(gradients.size(), loss.inputs());
  Random random(7);
  for (size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_EQ(gradients[i].size(), loss.Size(i));
    for (int single = 0; single < 6; ++single) {
      Elements direction(loss.Size(i), 0);
      if (single == 0) {
        for (double& element : direction) element = random.Uniform();
      } else {
        direction[random.Integer(0, static_cast<int64_t>(direction.size()) - 1)] = 1;
      }
      const Dot want = loss.Slope(i, direction), got = DotOf(gradients[i], direction);
      EXPECT_NEAR(got.sum, want.sum, want.magnitude + 1e-7 * got.magnitude + 1e-7)
          << network.values[network.inputs[i]].name << ", direction " << single;
      EXPECT_LE(want.magnitude, 1e-4 * (got.magnitude + 1)) << "a kink is near";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, OracleTest,
                         ::testing::ValuesIn(ForwardCases().begin(), ForwardCases().end()),
                         [](const ::testing::TestParamInfo<ForwardCase>& info) {
                           return std::string(info.param.name);
                         });

// As far from the exact result as f32 takes each gradient where every operation is rounded, several
// times over: the engine adds up in another order.
std::vector<double> Bounds(const Network& network, const std::vector<Elements>& inputs,
                           const std::vector<Elements>& exact) {
  const std::vector<Elements> rounded =
      Interpret(network, inputs, [](const network::Operation&, Elements* elements) {
        for (double& element : *elements) element = static_cast<float>(element);
      });
  std::vector<double> bounds;
  for (size_t i = 0; i < exact.size(); ++i) {
    const Tensor nearest(rounded[i].begin(), rounded[i].end());
    bounds.push_back(1e-5 + 8 * RelativeL2(nearest, exact[i]));
  }
  return bounds;
}

using Parameters = std::tuple<ForwardCase, cpu::Isa>;

class EngineTest : public ::testing::TestWithParam<Parameters> {};

// The gradients of a case as the engine computes them.
absl::StatusOr<std::vector<Tensor>> GradientsOf(const ForwardCase& forward,
                                                const EngineOptions& options) {
  const Network network = forward.differentiated(1);
  std::vector<Tensor> numbers;
  std::vector<InputTensor> tensors;
  for (const Elements& input : InputsOf(network)) numbers.emplace_back(input.begin(), input.end());
  for (size_t i = 0; i < numbers.size(); ++i) {
    tensors.push_back(
        {network.values[network.inputs[i]].dims, Layout::kNchw, {BytesOf(numbers[i])}});
  }
  std::vector<OutputRequest> requests;
  for (size_t i = 0; i < network.outputs.size(); ++i)
    requests.push_back({static_cast<int>(i), Layout::kNchw});
  const auto shared = std::make_shared<EngineShared>(options);
  ABSL_ASSIGN_OR_RETURN(
      const auto model,
      LoadedModel::Create(network::HandMadeModel(forward.differentiated), shared));
  ABSL_ASSIGN_OR_RETURN(const auto outputs, model->Run(tensors, requests, {}));
  std::vector<Tensor> gradients;
  for (const auto& output : outputs) gradients.push_back(FloatsOf(output.bytes));
  return gradients;
}

TEST_P(EngineTest, GradientsAreTheOraclesWithTheSameBitsForAnyThreads) {
  const auto& [forward, isa] = GetParam();
  if (!cpu::Supports(isa)) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(isa);
  const Network network = forward.differentiated(1);
  const std::vector<Elements> inputs = InputsOf(network);
  const std::vector<Elements> want = Interpret(network, inputs);
  const std::vector<double> bounds = Bounds(network, inputs, want);
  std::vector<Tensor> first;
  for (int threads : {1, 2}) {
    const auto found = GradientsOf(forward, Options(isa, threads));
    ASSERT_TRUE(found.ok()) << found.status();
    if (threads == 1) first = *found;
    for (size_t i = 0; i < want.size(); ++i) {
      const std::string& name = network.values[network.inputs[i]].name;
      EXPECT_LE(RelativeL2((*found)[i], want[i]), bounds[i]) << "of " << name;
      EXPECT_TRUE(BytesOf((*found)[i]) == BytesOf(first[i]))
          << "of " << name << ", threads " << threads;
    }
  }
}

const ForwardCase& CaseNamed(absl::string_view name) {
  for (const ForwardCase& forward : ForwardCases()) {
    if (forward.name == name) return forward;
  }
  ADD_FAILURE() << "no case '" << name << "'";
  return ForwardCases()[0];
}

// The steps of a plan for AVX2, whose rows every faster instruction set has, too.
std::vector<PlanStep> StepsOf(absl::string_view name) {
  const auto shared = std::make_shared<EngineShared>(Options(cpu::Isa::kAvx2, 1));
  const auto model =
      LoadedModel::Create(network::HandMadeModel(CaseNamed(name).differentiated), shared);
  return model.value()->Explain({})->steps;
}

int64_t CountOf(const std::vector<PlanStep>& steps, absl::string_view node,
                absl::string_view primitive) {
  return std::count_if(steps.begin(), steps.end(), [&](const PlanStep& step) {
    return step.node == node && step.primitive == primitive;
  });
}

TEST(TrainingPlanTest, ProductsAndFunctionsTakeGeneratedCode) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  int64_t seen = 0;
  for (const char* name : {"ConvolvedAndClassified", "ConcatenatedBranches", "BatchedProducts",
                           "Decoder", "OtherDeconvolutions"}) {
    for (const PlanStep& step : StepsOf(name)) {
      const bool is_product = step.primitive == "convolution" || step.primitive == "matmul" ||
                              step.primitive == "deconvolution";
      if (!is_product && step.primitive != "eltwise") continue;
      ++seen;
      EXPECT_FALSE(step.is_reference)
          << name << ", " << step.node << ": " << step.implementation << ": " << step.remark;
    }
  }
  EXPECT_GE(seen, 20);
}

TEST(TrainingPlanTest, AFunctionAfterAConvolutionTakesNoStep) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const std::vector<PlanStep> steps = StepsOf("ConvolvedAndClassified");
  EXPECT_EQ(CountOf(steps, "relu", "eltwise"), 0);
  EXPECT_EQ(CountOf(steps, "relu backward", "eltwise"), 1);
}

TEST(TrainingPlanTest, AFunctionAndABiasAfterADeconvolutionTakeNoStep) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const std::vector<PlanStep> steps = StepsOf("Decoder");
  EXPECT_EQ(CountOf(steps, "up", "deconvolution"), 1);
  EXPECT_EQ(CountOf(steps, "up", "binary"), 0);
  EXPECT_EQ(CountOf(steps, "relu", "eltwise"), 0);
  EXPECT_EQ(CountOf(steps, "wide", "deconvolution"), 1);
  // Without strides it is the gradient of a convolution, which may be Winograd's.
  EXPECT_EQ(CountOf(steps, "same", "convolution"), 1);
  EXPECT_EQ(CountOf(steps, "same", "binary"), 1);
}

TEST(TrainingPlanTest, WeightsOfAProductAreTransposedByTheirStrides) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const PlanStep& step : StepsOf("ConvolvedAndClassified")) {
    EXPECT_NE(step.node, "turned") << step.implementation << ": " << step.remark;
    if (step.node != "turned backward") continue;
    EXPECT_EQ(step.primitive, "matmul");
  }
}

// A normalization that takes over the operations after it changes no bit of a gradient.
TEST(FusedNormalizationTest, GradientsHaveTheBitsOfSteps) {
  constexpr const char* kPairs[][2] = {{"ResidualBranches", "FusedResiduals"},
                                       {"LimitedBranches", "FusedLimited"}};
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::BestIsa()}) {
    if (!cpu::Supports(isa)) continue;
    for (const auto& [steps, fused] : kPairs) {
      const auto want = GradientsOf(CaseNamed(steps), Options(isa, 1));
      const auto found = GradientsOf(CaseNamed(fused), Options(isa, 1));
      ASSERT_TRUE(want.ok() && found.ok()) << want.status() << found.status();
      EXPECT_EQ(*found, *want) << fused << " " << cpu::IsaName(isa);
    }
  }
}

TEST(FusedNormalizationTest, RelusAndSumsTakeNoSteps) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const auto count = [](const std::vector<PlanStep>& steps, absl::string_view primitive) {
    return std::count_if(steps.begin(), steps.end(),
                         [&](const PlanStep& step) { return step.primitive == primitive; });
  };
  const std::vector<PlanStep> steps = StepsOf("ResidualBranches"),
                              fused = StepsOf("FusedResiduals");
  EXPECT_EQ(count(steps, "eltwise"), 4);  // two relus and their gradients
  EXPECT_EQ(count(fused, "eltwise"), 0);
  EXPECT_EQ(CountOf(steps, "sum", "sum"), 1);
  EXPECT_EQ(CountOf(fused, "sum", "sum"), 0);
  for (const PlanStep& step : fused) {
    if (step.primitive != "batch_normalization") continue;
    EXPECT_FALSE(step.is_reference) << step.node << ": " << step.implementation;
  }
  EXPECT_EQ(CountOf(StepsOf("LimitedBranches"), "sum", "sum"), 1);
  EXPECT_EQ(CountOf(StepsOf("FusedLimited"), "sum", "sum"), 0);
}

TEST(TrainingPlanTest, RowsAreNormalizedAndDifferentiatedByOneStepEach) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const auto& [name, norms] : {std::pair("TransformerBlock", 2), {"NormalizedPixels", 4}}) {
    int64_t seen = 0;
    for (const PlanStep& step : StepsOf(name)) {
      EXPECT_NE(step.primitive, "reduction") << name << ", " << step.node;
      if (step.primitive != "layer_normalization") continue;
      ++seen;
      EXPECT_FALSE(step.is_reference) << name << ", " << step.node << ": " << step.implementation;
    }
    EXPECT_EQ(seen, 2 * norms) << name;
  }
}

std::vector<cpu::Isa> Levels() { return {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::BestIsa()}; }

INSTANTIATE_TEST_SUITE_P(Networks, EngineTest,
                         ::testing::Combine(::testing::ValuesIn(ForwardCases().begin(),
                                                                ForwardCases().end()),
                                            ::testing::ValuesIn(Levels())),
                         [](const ::testing::TestParamInfo<Parameters>& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(info.index % Levels().size());
                         });

}  // namespace
}  // namespace tilewire::testing
