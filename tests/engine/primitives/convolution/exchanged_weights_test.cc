// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/exchanged_weights.h"

#include "engine/cpu/isa.h"
#include "engine/memory/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::convolution {
namespace {

using ::tilewire::testing::RandomFloats;

struct Exchange {
  const char* why;
  Dims weights;
  const char *from, *to;
  bool grouped = false;
  bool generated = true;  // squares of channels are transposed by generated code
};

const Exchange kExchanges[] = {
    {"squares of both sides", {16, 24, 3, 3}, "ABcd8b8a", "ABcd8b8a"},
    {"squares in larger blocks", {32, 48, 1, 1}, "ABcd16b16a", "ABcd16b16a"},
    {"taps outermost", {16, 40, 3, 2}, "ABcd8b8a", "cdAB8b8a"},
    {"lanes with all taps of a channel between rows", {24, 16, 3, 3}, "ABcd8b8a", "Abcd8a"},
    {"squares, and channels that fill none", {21, 35, 3, 3}, "ABcd8b8a", "ABcd8b8a"},
    {"the same in larger blocks", {21, 35, 1, 1}, "ABcd16b16a", "ABcd16b16a"},
    {"groups", {3, 16, 8, 3, 3}, "aBCde8c8b", "aBCde8c8b", true},
    {"a volume, more squares than are fetched ahead", {8, 16, 3, 3, 3}, "ABcde8b8a", "ABcde8b8a"},
    {"larger squares, more than a call copies", {224, 64, 3, 3}, "ABcd16b16a", "ABcd16b16a"},
    {"larger squares, all taps of a channel between rows", {32, 48, 3, 3}, "ABcd16b16a", "Abcd16a"},
    {"larger squares in smaller blocks", {32, 48, 1, 1}, "ABcd16b16a", "ABcd8b8a"},
    {"many output channels", {400, 16, 1, 1}, "ABcd8b8a", "ABcd8b8a"},
    {"fewer channels than a square has", {7, 64, 1, 1}, "ABcd8b8a", "ABcd8b8a", false, false},
    {"plain weights", {16, 24, 3, 3}, "abcd", "ABcd8b8a", false, false},
    {"a plain copy", {16, 24, 3, 3}, "ABcd8b8a", "abcd", false, false},
};

// The index of the copy's element that `index` of the weights goes to.
Dims CopiedTo(const Exchange& exchange, Dims index, bool flips) {
  const int outputs = exchange.grouped ? 1 : 0;
  std::swap(index[outputs], index[outputs + 1]);
  for (size_t d = outputs + 2; flips && d < index.size(); ++d)
    index[d] = exchange.weights[d] - 1 - index[d];
  return index;
}

bool Next(const Dims& dims, Dims* index) {
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    if (++(*index)[d] < dims[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}

void Check(const Exchange& exchange, bool flips, cpu::Isa isa) {
  SCOPED_TRACE(::testing::Message()
               << exchange.why << (flips ? ", flipped, " : ", ") << cpu::IsaName(isa));
  ASSERT_OK_AND_ASSIGN(const MemoryDesc from,
                       MemoryDesc::CreatePattern(exchange.weights, DataType::kF32, exchange.from));
  ASSERT_OK_AND_ASSIGN(const MemoryDesc to,
                       MemoryDesc::CreatePattern(ExchangedDims(exchange.weights, exchange.grouped),
                                                 DataType::kF32, exchange.to));
  ASSERT_OK_AND_ASSIGN(
      const ExchangedWeights weights,
      ExchangedWeights::Create("exchange", VectorUnit::Of(isa), from, to, exchange.grouped, flips));
  EXPECT_EQ(weights.code_bytes() > 0, exchange.generated);
  const std::vector<float> source = RandomFloats(from.SizeBytes() / sizeof(float), 1);
  std::vector<float> expected(to.SizeBytes() / sizeof(float), 0.0f);
  Dims index(exchange.weights.size(), 0);
  do {
    expected[to.Offset(CopiedTo(exchange, index, flips))] = source[from.Offset(index)];
  } while (Next(exchange.weights, &index));
  for (int threads : {1, 2, 7}) {
    threading::Arena arena(threads);
    std::vector<float> copy(expected.size(), 7.0f);
    weights.Run(source.data(), copy.data(), threading::Team(&arena));
    EXPECT_TRUE(copy == expected) << threads << " threads";
  }
}

// Every element arrives, and the padded tail of the copy is zero whatever the weights' own holds.
TEST(ExchangedWeightsTest, ChannelsChangePlaces) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const Exchange& exchange : kExchanges) {
    for (bool flips : {false, true}) Check(exchange, flips, cpu::Isa::kAvx2);
  }
}

TEST(ExchangedWeightsTest, ChannelsChangePlacesInLargerSquares) {
  if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks avx512";
  for (const Exchange& exchange : kExchanges) {
    for (bool flips : {false, true}) Check(exchange, flips, cpu::Isa::kAvx512);
  }
}

}  // namespace
}  // namespace tilewire::convolution
