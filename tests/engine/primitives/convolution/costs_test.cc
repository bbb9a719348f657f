// SPDX-License-Identifier: Apache-2.0
//
// The costs of rows of convolution on a machine of two FMAs and 5.6 bytes from memory per cycle,
// against the formulas by hand; and that each row is named where another one is chosen.
// choices_test.cc has what is chosen.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/convolution/tile_machine.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::Contains;
using ::testing::Field;

struct CostCase {
  const char* why;
  const char* row;
  int64_t ic, oc, size, kernel;
  Precision precision;
  double cycles;
  cpu::Machine machine = {};
};

std::ostream& operator<<(std::ostream& out, const CostCase& one) {
  return out << one.row << ": " << one.why;
}

// As engine/cpu/machine.cc has it.
constexpr cpu::Machine kZen3 = {.reached_of_32_bytes = 0.92,
                                .hidden_reading = 0.5,
                                .spilling = 1.43,
                                .cycles_of_byte_read = 0.08,
                                .cycles_of_byte_written = 0.52};

constexpr CostCase kCostCases[] = {
    {"4 x 64 x 9 x 56^2 FMAs at 0.92 of 2, 147,456 bytes", "avx512_f32_direct", 64, 64, 56, 3,
     Precision::kExact, 3'953'359},
    {"8 x 64 x 9 x 56^2 of half the lanes", "avx2_f32_direct", 64, 64, 56, 3, Precision::kExact,
     7'880'177},
    {"196 tiles of 36 points, 8 blocks to transform", "avx512_f32_winograd_4x3", 64, 64, 56, 3,
     Precision::kExact, 1'459'054},
    {"784 tiles of 16 points", "avx512_f32_winograd_2x3", 64, 64, 56, 3, Precision::kExact,
     2'612'509},
    {"4 outputs of 16 blocks and the sums of lanes, src from the second cache",
     "avx512_f32_few_outputs", 256, 4, 56, 1, Precision::kExact, 540'705},
    {"a 1.75th, and 6,272 lines to round", "avx512_bf16_direct", 64, 64, 56, 3, Precision::kBf16,
     2'409'590},
    {"where rounding is most of it, a little less than direct", "avx512_bf16_direct", 64, 16, 56, 1,
     Precision::kBf16, 98'834},
    {"13 x 16 tiles of 8 products, 1,664 lines, 131,072 bytes", "amx_bf16_planes", 256, 256, 14, 1,
     Precision::kBf16, 173'677},
    {"7 strips, of which 6 read 1,572,864 bytes again", "amx_f32_split6_planes", 1024, 256, 14, 1,
     Precision::kExact, 2'627'684},
    {"inputs and sums go through the third cache", "amx_f32_split6_winograd_4x3", 256, 256, 56, 3,
     Precision::kExact, 27'655'359},
    {"inputs and sums stay in the second cache", "amx_f32_split6_winograd_4x3", 64, 64, 56, 3,
     Precision::kExact, 1'890'834},
    {"src and dst of 802,816 bytes, and 0.92 of the rate", "avx2_f32_direct", 64, 64, 56, 3,
     Precision::kExact, 9'032'675, kZen3},
    {"slower than f32, if its products alone are",
     "avx512_bf16_direct",
     64,
     64,
     56,
     3,
     Precision::kBf16,
     7'338'453,
     {.bf16_gain = 0.55}},
    {"half of what takes less, products or weights, is hidden",
     "avx2_f32_winograd_4x3",
     256,
     256,
     14,
     3,
     Precision::kExact,
     3'858'655,
     {.hidden_reading = 0.5, .spilling = 1.43}},
};

class ConvolutionCostTest : public ::testing::TestWithParam<CostCase> {
 protected:
  ConvolutionDesc Desc() const {
    const CostCase& one = GetParam();
    const int64_t pad = one.kernel / 2;
    return DescOf(Case("", {1, one.ic, one.size, one.size}, one.oc, {one.kernel, one.kernel},
                       {.left = {pad, pad}}));
  }
  absl::StatusOr<std::shared_ptr<const Primitive>> Create(absl::string_view only) const {
    Attributes attributes = AttributesOf({});
    attributes.precision = GetParam().precision;
    const bool is_avx2 = absl::StartsWith(GetParam().row, "avx2");
    return CreateConvolution(Desc(), attributes,
                             {.max_isa = is_avx2 ? cpu::Isa::kAvx2 : cpu::Isa::kAmx,
                              .only = only,
                              .machine = GetParam().machine});
  }
};

TEST_P(ConvolutionCostTest, IsThatOfTheFormula) {
  const std::string row = absl::StrCat("convolution/", GetParam().row);
  ASSERT_OK_AND_ASSIGN(const auto named, Create(row));
  EXPECT_NEAR(named->info().creation.cycles / GetParam().cycles, 1, 1e-4)
      << named->info().creation.cycles;
}

TEST_P(ConvolutionCostTest, IsNamedWhereAnotherRowIsChosen) {
  const std::string row = absl::StrCat("convolution/", GetParam().row);
  ASSERT_OK_AND_ASSIGN(const auto chosen, Create(""));
  const CreationRecord& record = chosen->info().creation;
  if (chosen->name() == row) {
    EXPECT_NEAR(record.cycles / GetParam().cycles, 1, 1e-4);
  } else {
    EXPECT_THAT(record.refusals, Contains(Field(&Refusal::name, row)));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ConvolutionCostTest, ::testing::ValuesIn(kCostCases));

struct MeasuredChoice {
  const char* fastest;
  int64_t ic, oc, size, kernel;
};

void ExpectChoicesOfAvx2(absl::Span<const MeasuredChoice> choices, const cpu::Machine& machine) {
  for (const MeasuredChoice& one : choices) {
    const int64_t pad = one.kernel / 2;
    const ConvolutionDesc desc = DescOf(Case("", {1, one.ic, one.size, one.size}, one.oc,
                                             {one.kernel, one.kernel}, {.left = {pad, pad}}));
    ASSERT_OK_AND_ASSIGN(const auto chosen,
                         CreateConvolution(desc, AttributesOf({}),
                                           {.max_isa = cpu::Isa::kAvx2, .machine = machine}));
    EXPECT_EQ(chosen->name(), absl::StrCat("convolution/", one.fastest)) << desc.dst.ToString();
  }
}

// Shapes of tests/bench/figures/zen3.md with their fastest rows; first those for which other rows
// were chosen when reading weights was not hidden.
TEST(ConvolutionChoicesTest, AreTheFastestRowsOfZen3) {
  constexpr MeasuredChoice kChoices[] = {
      {"avx2_f32_winograd_4x3", 256, 256, 14, 3}, {"avx2_f32_winograd_4x3", 512, 512, 14, 3},
      {"avx2_f32_winograd_4x3", 512, 512, 28, 3}, {"avx2_f32_winograd_2x3", 512, 512, 7, 3},
      {"avx2_f32_direct", 256, 4, 56, 1},         {"avx2_f32_few_outputs", 64, 2, 56, 3}};
  ExpectChoicesOfAvx2(kChoices, kZen3);
}

// Shapes of tests/bench/figures/sapphire_rapids.md, with no more than AVX2; first those of
// SqueezeNet and GoogLeNet for which F(2x2) was chosen when transforms seemed to take longer.
TEST(ConvolutionChoicesTest, AreTheFastestRowsOfAvx2BesideTiles) {
  constexpr MeasuredChoice kChoices[] = {
      {"avx2_f32_winograd_4x3", 48, 192, 13, 3},  {"avx2_f32_winograd_4x3", 64, 256, 13, 3},
      {"avx2_f32_winograd_4x3", 96, 208, 14, 3},  {"avx2_f32_winograd_4x3", 16, 32, 28, 3},
      {"avx2_f32_winograd_4x3", 512, 512, 28, 3}, {"avx2_f32_winograd_2x3", 512, 512, 14, 3},
      {"avx2_f32_winograd_2x3", 512, 512, 7, 3},  {"avx2_f32_few_outputs", 64, 2, 56, 3}};
  ExpectChoicesOfAvx2(kChoices, MachineWithTiles());
}

}  // namespace
}  // namespace tilewire::testing
