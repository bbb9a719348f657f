// SPDX-License-Identifier: Apache-2.0
//
// Which tensors are bf16 with the precision bf16, and that the answer does not show it.
#include "engine/lowering/weighted/bf16_values.h"

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "engine/lowering/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::lowering {
namespace {

using network::NetworkBuilder;
using network::ValueId;
using testing::BytesOf;
using ::testing::ElementsAre;
using testing::kImages;
using testing::Options;
using testing::Subject;

constexpr network::ConvolutionOptions OneByOne() { return {.kernel = 1, .padding = 0}; }

// A residual block after a first layer and a maximum, as in ResNet; channels that are filtered one
// by one, as in MobileNet; branches that meet, one of which ends inside a block, as in GoogLeNet;
// two channels in the middle, which are read in blocks.
NetworkBuilder Branches(int64_t n, ValueId* answer) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 3, 31, 37});
  const ValueId stem =
      b.Conv("stem", x, 64, {.kernel = 7, .stride = 2, .padding = 3, .fused = {network::Relu()}});
  const ValueId pool = b.MaxPool("pool", stem, 3, 2, 1);
  const ValueId down = b.Conv("down", pool, 96, OneByOne());
  const ValueId a = b.Conv("a", pool, 48, {.kernel = 1, .padding = 0, .fused = {network::Relu()}});
  const ValueId sum = b.Conv(
      "sum", a, 96, {.kernel = 1, .padding = 0, .fused = {network::Add(down), network::Relu()}});
  const ValueId wide = b.Conv("wide", sum, 72, OneByOne());
  const ValueId depthwise = b.Conv("depthwise", wide, 72, {.groups = 72});
  const ValueId left = b.Conv("left", depthwise, 32, OneByOne());
  const ValueId right = b.Conv("right", sum, 64, {.kernel = 1, .padding = 0});
  const ValueId last = b.Conv("last", sum, 24, OneByOne());
  const ValueId both = b.ConcatOf("both", {left, right, last});
  const ValueId cut = b.ConcatOf("cut", {b.Conv("odd", sum, 40, OneByOne()), sum});
  const ValueId two = b.Conv("two", sum, 2, OneByOne());
  const ValueId from_two = b.Conv("from_two", two, 48, {.stride = 2});
  *answer = b.SumOf("answer", {b.Conv("y", both, 32, {.stride = 2}),
                               b.Conv("z", cut, 32, {.kernel = 1, .stride = 2, .padding = 0}),
                               b.Conv("w", from_two, 32, OneByOne())});
  return b;
}

network::Network WithBf16(int64_t n) {
  ValueId answer;
  NetworkBuilder b = Branches(n, &answer);
  return b.Finish({answer});
}

// Outputs stay f32.
network::Network WithoutBf16(int64_t n) {
  ValueId answer;
  NetworkBuilder b = Branches(n, &answer);
  std::vector<ValueId> outputs = {answer};
  for (ValueId id = 1; id < answer; ++id) outputs.push_back(id);
  return b.Finish(outputs);
}

class Bf16ValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAvx512Bf16)) GTEST_SKIP() << "the CPU lacks avx512_bf16";
  }
};

// The nodes whose step writes bf16.
std::vector<std::string> Bf16Nodes(Precision precision, cpu::Isa max_isa) {
  const network::Network network = WithBf16(1);
  PrimitiveCache cache(int64_t{64} << 20);
  LoweringContext context;
  context.options.max_isa = max_isa;
  context.options.machine = cpu::Machine{.kind = "gains by products of pairs", .bf16_gain = 1.75};
  runtime::PackedWeights weights(&cache, context.options);
  context.cache = &cache;
  context.weights = &weights;
  context.precision = precision;
  std::vector<std::string> nodes;
  const auto plan = LowerNetwork(network, context).value();
  for (const runtime::Step& step : plan->steps) {
    if (step.primitive == nullptr) continue;
    EXPECT_FALSE(step.primitive->info().traits.is_reference) << step.node;
    if (step.primitive->Desc(kArgDst).data_type() == DataType::kBf16) nodes.push_back(step.node);
  }
  return nodes;
}

TEST_F(Bf16ValuesTest, AreThoseThatOnlyProductsOfBf16Read) {
  EXPECT_THAT(Bf16Nodes(Precision::kBf16, cpu::Isa::kAvx512Bf16),
              ElementsAre("stem", "pool", "a", "depthwise", "left", "right", "last"));
  for (const Precision precision : {Precision::kExact, Precision::kFast})
    EXPECT_THAT(Bf16Nodes(precision, cpu::Isa::kAvx512Bf16), ElementsAre());
  EXPECT_THAT(Bf16Nodes(Precision::kBf16, cpu::Isa::kAvx512Vnni), ElementsAre());
}

TEST_F(Bf16ValuesTest, ChangeNoBitOfTheAnswer) {
  for (const int threads : {1, 2}) {
    EngineOptions options = Options(cpu::BestIsa(), threads);
    options.precision = Precision::kBf16;
    const Subject with(WithBf16, options), without(WithoutBf16, options);
    for (const int64_t batch : {int64_t{1}, int64_t{2}, kImages}) {
      const auto got = with.Run(batch, Layout::kNchw, Layout::kNchw);
      const auto want = without.Run(batch, Layout::kNchw, Layout::kNchw);
      ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
      EXPECT_TRUE(BytesOf((*got)[0]) == BytesOf((*want)[0])) << "a batch of " << batch;
    }
  }
}

}  // namespace
}  // namespace tilewire::lowering
