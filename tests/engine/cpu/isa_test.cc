// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/isa.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

using ::testing::HasSubstr;

constexpr Isa kAll[] = {Isa::kBaseline,   Isa::kAvx2,       Isa::kAvx2Vnni,   Isa::kAvx512,
                        Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Fp16, Isa::kAmx};

TEST(IsaTest, NamesAndSetsAreInverse) {
  for (Isa isa : kAll) EXPECT_EQ(ParseIsa(IsaName(isa)).value(), isa) << IsaName(isa);
  EXPECT_EQ(ParseIsa("best").value(), BestIsa());
}

TEST(IsaTest, UnknownNameListsTheKnownOnes) {
  const absl::Status status = ParseIsa("avx").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (Isa isa : kAll) EXPECT_THAT(status.message(), HasSubstr(IsaName(isa)));
}

// The sets that each set includes.
TEST(IsaTest, SetsIncludeWhatTheyBuildOnAndNothingElse) {
  const struct {
    Isa isa;
    absl::string_view includes;  // a '1' per set of kAll that it includes
  } cases[] = {
      {Isa::kBaseline, "10000000"},   {Isa::kAvx2, "11000000"},
      {Isa::kAvx2Vnni, "11100000"},   {Isa::kAvx512, "11010000"},
      {Isa::kAvx512Vnni, "11011000"}, {Isa::kAvx512Bf16, "11011100"},
      {Isa::kAvx512Fp16, "11011110"}, {Isa::kAmx, "11011101"},
  };
  for (const auto& c : cases) {
    for (size_t i = 0; i < std::size(kAll); ++i) {
      EXPECT_EQ(c.isa.Includes(kAll[i]), c.includes[i] == '1')
          << IsaName(c.isa) << " and " << IsaName(kAll[i]);
    }
  }
}

TEST(IsaTest, UnionAndIntersectionKeepFeaturesApart) {
  const Isa both = Isa::kAvx2Vnni | Isa::kAvx512;
  EXPECT_TRUE(both.Includes(Isa::kAvx2Vnni));
  EXPECT_TRUE(both.Includes(Isa::kAvx512));
  EXPECT_FALSE(both.Includes(Isa::kAvx512Vnni));
  EXPECT_EQ(both & Isa::kAvx512Vnni, Isa::kAvx512);
  EXPECT_EQ(IsaName(both), "avx512");
}

TEST(IsaTest, EverySupportedSetBringsWhatItBuildsOn) {
  EXPECT_TRUE(Supports(Isa::kBaseline));
  for (Isa isa : kAll) {
    if (!Supports(isa)) continue;
    for (Isa part : kAll) EXPECT_GE(Supports(part), isa.Includes(part)) << IsaName(part);
  }
}

TEST(IsaTest, EnvironmentCapsTheBestSet) {
  const char* cap = std::getenv("TILEWIRE_MAX_ISA");
  if (cap == nullptr || !ParseIsa(cap).ok()) GTEST_SKIP() << "TILEWIRE_MAX_ISA is not set";
  EXPECT_TRUE(ParseIsa(cap)->Includes(BestIsa()));
}

}  // namespace
}  // namespace tilewire::cpu
