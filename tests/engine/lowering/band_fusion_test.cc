// SPDX-License-Identifier: Apache-2.0
//
// Chains of steps that run band by band: the same bits as step by step, whatever lies between them.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "engine/lowering/lowering.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/tensor_layout.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/network_builder.h"
#include "tests/support/float_tensors.h"

namespace tilewire::runtime {
namespace {

using network::NetworkBuilder;
using network::Pooling;
using network::ValueId;

using lowering::BandLimits;

constexpr BandLimits kNever = {.least_bytes = int64_t{1} << 40};
struct ChainCase {
  const char* name;
  network::Network (*make)(int64_t batch);
  int64_t most_bytes;  // of a band and all weights: a few rows
  int chains, steps;   // on AVX-512
};

BandLimits Always(const ChainCase& chain) {
  return {.least_bytes = 1, .most_bytes = chain.most_bytes, .most_rows = 100};
}

// The beginning of a mobile network; the first convolution of the chain reads the request.
network::Network MobileStem(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 39, 31});
  const ValueId stem = b.Conv("stem", x, 24, {.stride = 2, .fused = {network::Relu()}});
  const ValueId depthwise = b.Conv("depthwise", stem, 24, {.groups = 24});
  const ValueId project = b.Conv("project", depthwise, 10, {.kernel = 1, .padding = 0});
  const ValueId expand =
      b.Conv("expand", project, 40, {.kernel = 1, .padding = 0, .fused = {network::Relu()}});
  return b.Finish({b.Conv("down", expand, 40, {.stride = 2, .groups = 40, .bias = false})});
}

// Wide windows, and poolings that count padding.
network::Network WideWindows(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 29, 9});
  const ValueId seven = b.Conv("seven", x, 20, {.kernel = 7, .stride = 2, .padding = 3});
  const ValueId average = b.Pool("average", seven, Pooling::Algorithm::kAvgIncludePadding, 3, 1, 1);
  const ValueId dilated = b.Conv("dilated", average, 18, {.padding = 2, .dilation = 1});
  const ValueId largest = b.MaxPool("largest", dilated, 3, 2, 1);
  return b.Finish({b.Pool("inside", largest, Pooling::Algorithm::kAvgExcludePadding, 3, 1, 1)});
}

// The sum writes over what the chain's first convolution reads, so that it stays a step of its own.
network::Network SumOverTheSource(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 8, 15, 8});
  const ValueId stem = b.Conv("stem", x, 16, {.kernel = 1, .padding = 0});
  const ValueId expand = b.Conv("expand", stem, 32, {.kernel = 1, .padding = 0});
  const ValueId depthwise = b.Conv("depthwise", expand, 32, {.groups = 32});
  return b.Finish({b.Conv("project", depthwise, 16,
                          {.kernel = 1, .padding = 0, .fused = {network::Add(stem)}})});
}

// The sum writes over the result of a step outside the chain, so that it joins the chain.
network::Network SumOverAnother(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 8, 15, 8});
  const ValueId other = b.Pool("other", b.Conv("aside", x, 16, {.kernel = 1, .padding = 0}),
                               Pooling::Algorithm::kMax, 3, 1, 1);
  const ValueId stem = b.Conv("stem", x, 16, {.kernel = 1, .padding = 0});
  const ValueId depthwise = b.Conv("depthwise", stem, 16, {.groups = 16});
  return b.Finish({b.Conv("project", depthwise, 16,
                          {.kernel = 1, .padding = 0, .fused = {network::Add(other)}})});
}

// The intermediate tensors are outputs, too, or are read twice.
network::Network ReadElsewhere(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 11, 7});
  const ValueId answer = b.Conv("answer", x, 16, {.kernel = 1, .padding = 0});
  const ValueId twice = b.Conv("twice", answer, 16, {.groups = 16});
  const ValueId left = b.Conv("left", twice, 16, {.groups = 16});
  return b.Finish({answer, left, b.Conv("right", twice, 16, {.groups = 16})});
}

// The end of a text detector: pixels become tiles of pixels, twice.
network::Network Mask(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 7, 6});
  const ValueId features = b.Conv("features", x, 24, {.fused = {network::Relu()}});
  const ValueId larger = b.Deconv(
      "larger", features, 24, {.kernel = 2, .stride = 2, .padding = 0, .fused = {network::Relu()}});
  return b.Finish({b.Deconv("mask", larger, 1, {.kernel = 2, .stride = 2, .padding = 0})});
}

// Deconvolutions whose windows overlap, with padding, gaps and a height that no stride divides.
network::Network OverlappingTiles(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 6, 5});
  const ValueId up = b.Deconv("up", x, 20, {.kernel = 4, .stride = 2, .padding = 1});
  const ValueId conv = b.Conv("conv", up, 18, {.fused = {network::Relu()}});
  const ValueId odd = b.Deconv("odd", conv, 24, {.kernel = 3, .stride = 2, .dilation = 1});
  return b.Finish({b.Pool("average", odd, Pooling::Algorithm::kAvgIncludePadding, 3, 1, 1)});
}

// Each window overlaps that of the band before, of rows that were computed from overlapping ones;
// the pooling reads every fourth row only, and half of the last band's rows read padding.
network::Network WindowsOverWindows(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 20, 41, 6});
  const ValueId one = b.Conv("one", x, 36, {.kernel = 1, .padding = 0, .fused = {network::Relu()}});
  const ValueId two = b.Conv("two", one, 36, {.groups = 36});
  const ValueId three = b.Conv("three", two, 24, {.kernel = 1, .padding = 0});
  const ValueId four = b.Conv("four", three, 24, {.padding = 4, .dilation = 3, .groups = 24});
  const ValueId five = b.Conv("five", four, 18, {.groups = 6, .fused = {network::Relu()}});
  return b.Finish({b.Pool("apart", five, Pooling::Algorithm::kMax, 2, 4, 0)});
}

// Nothing reaches every third row of the deconvolution's result: it is a step of its own.
network::Network RowsThatNothingReaches(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 16, 7, 6});
  const ValueId conv = b.Conv("conv", x, 16);
  return b.Finish({b.Deconv("apart", conv, 16, {.kernel = 2, .stride = 3, .padding = 0})});
}

// For MobileStemInTwo a band of all five steps is too large: the best cut into two chains is at the
// smallest tensor.
constexpr ChainCase kCases[] = {
    {"MobileStem", MobileStem, 48 * 1024, 1, 1},
    {"MobileStemInTwo", MobileStem, 36 * 1024, 2, 2},
    {"WideWindows", WideWindows, 200 * 1024, 1, 1},
    {"SumOverTheSource", SumOverTheSource, 24 * 1024, 1, 3},
    {"SumOverAnother", SumOverAnother, 24 * 1024, 2, 2},
    {"ReadElsewhere", ReadElsewhere, 24 * 1024, 0, 4},
    {"Mask", Mask, 48 * 1024, 1, 1},
    {"OverlappingTiles", OverlappingTiles, 200 * 1024, 1, 1},
    {"WindowsOverWindows", WindowsOverWindows, 100 * 1024, 1, 1},
    {"RowsThatNothingReaches", RowsThatNothingReaches, 24 * 1024, 0, 2}};

class BandFusionTest : public ::testing::TestWithParam<std::tuple<ChainCase, cpu::Isa>> {
 protected:
  static const ChainCase& Case() { return std::get<0>(GetParam()); }
  static cpu::Isa Isa() { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!cpu::Supports(Isa())) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(Isa());
  }

  std::shared_ptr<const Plan> PlanWith(int64_t batch, const BandLimits& limits) {
    lowering::LoweringContext context;
    context.cache = &cache_;
    context.options.max_isa = Isa();
    context.convolution_algorithm = ConvolutionAlgorithm::kDirect;
    context.bands = limits;
    weights_ = std::make_unique<PackedWeights>(&cache_, context.options);
    context.weights = weights_.get();
    return lowering::LowerNetwork(Case().make(batch), context).value();
  }

  // The outputs' bytes, one after the other.
  std::string Run(const Plan& plan, int threads, bool channels_last) {
    const Dims& dims = plan.inputs[0].desc.dims();
    std::vector<float> image = network::PseudoRandom("x", *ElementCount(dims), -1, 1);
    if (channels_last) image = testing::ChannelsLast(image, dims);
    const absl::string_view piece = testing::BytesOf(image);
    const ClientDescs& client = plan.inputs[0].client;
    const InputBytes input{channels_last ? &client.channels_last : &client.channels_first,
                           {&piece, 1}};
    std::vector<OutputBytes> outputs;
    for (const PlanOutput& output : plan.outputs) {
      const int index = static_cast<int>(outputs.size());
      outputs.push_back({index, &output.client.channels_first, {}});
    }
    threading::Arena arena(threads);
    const ExecutionContext context{.scratchpads = &pool_, .team = threading::Team(&arena)};
    EXPECT_TRUE(Execute(plan, {&input, 1}, absl::MakeSpan(outputs), context).ok());
    std::string bytes;
    for (const OutputBytes& output : outputs)
      bytes.append(reinterpret_cast<const char*>(output.bytes.data()), output.bytes.size());
    return bytes;
  }

  PrimitiveCache cache_{int64_t{64} << 20};
  std::unique_ptr<PackedWeights> weights_;
  ScratchpadPool pool_;
};

TEST_P(BandFusionTest, TheBitsOfStepByStep) {
  for (const int64_t batch : {1, 3}) {
    const std::shared_ptr<const Plan> apart = PlanWith(batch, kNever);
    const std::string want = Run(*apart, /*threads=*/1, /*channels_last=*/false);
    const std::shared_ptr<const Plan> banded = PlanWith(batch, Always(Case()));
    EXPECT_EQ(banded->inputs[0].variants.size(), apart->inputs[0].variants.size());
    for (const int threads : {1, 2}) {
      for (const bool channels_last : {false, true}) {
        EXPECT_TRUE(Run(*banded, threads, channels_last) == want)
            << "batch " << batch << ", threads " << threads << ", nhwc " << channels_last;
      }
    }
  }
}

TEST_P(BandFusionTest, ChainsEndWhereATensorIsNeededAsAWhole) {
  if (Isa() != cpu::Isa::kAvx512) GTEST_SKIP() << "rows of the table are for one register size";
  const std::shared_ptr<const Plan> plan = PlanWith(1, Always(Case()));
  EXPECT_EQ(plan->steps.size(), Case().steps);
  EXPECT_EQ(std::count_if(plan->steps.begin(), plan->steps.end(),
                          [](const Step& step) { return step.bands != nullptr; }),
            Case().chains);
}

TEST_P(BandFusionTest, TheTensorsInBetweenNeedNoBuffer) {
  EXPECT_LE(PlanWith(1, Always(Case()))->arena_bytes, PlanWith(1, kNever)->arena_bytes);
}

TEST_P(BandFusionTest, ChainsOfTooManyWeightsStayApart) {
  BandLimits limits = Always(Case());
  limits.most_weights_bytes = 0;
  const auto plan = PlanWith(1, limits);
  for (const Step& step : plan->steps) {
    if (step.bands == nullptr) continue;
    EXPECT_EQ(step.bands->args().size(), 2) << "a src and a dst alone";
  }
}

TEST(BandLimitsTest, AreHalfOfTheSecondCacheWithinBounds) {
  const auto most_of = [](int64_t cache_bytes) {
    cpu::Machine machine;
    machine.cache_bytes[1] = cache_bytes;
    return BandLimits::For(machine).most_bytes;
  };
  constexpr int64_t kKilobyte = 1024;
  EXPECT_EQ(most_of(0), 512 * kKilobyte) << "not known";
  EXPECT_EQ(most_of(512 * kKilobyte), 512 * kKilobyte);
  EXPECT_EQ(most_of(1536 * kKilobyte), 768 * kKilobyte);
  EXPECT_EQ(most_of(2048 * kKilobyte), 1024 * kKilobyte);
  EXPECT_EQ(most_of(8192 * kKilobyte), 1024 * kKilobyte) << "of several cores";
}

INSTANTIATE_TEST_SUITE_P(Chains, BandFusionTest,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(cpu::Isa::kAvx2, cpu::Isa::kAvx512)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(cpu::IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tilewire::runtime
