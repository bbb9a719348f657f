// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/isa.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

using ::testing::HasSubstr;

constexpr Isa kAll[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni,
                        Isa::kAvx512Bf16};

TEST(IsaTest, NamesAndLevelsAreInverse) {
  for (Isa isa : kAll) EXPECT_EQ(ParseIsa(IsaName(isa)).value(), isa) << IsaName(isa);
  EXPECT_EQ(ParseIsa("best").value(), BestIsa());
}

TEST(IsaTest, UnknownNameListsTheKnownOnes) {
  const absl::Status status = ParseIsa("avx").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (Isa isa : kAll) EXPECT_THAT(status.message(), HasSubstr(IsaName(isa)));
}

TEST(IsaTest, LevelsIncludeThoseBefore) {
  EXPECT_TRUE(Supports(Isa::kBaseline));
  for (size_t i = 1; i < std::size(kAll); ++i) {
    EXPECT_LE(Supports(kAll[i]), Supports(kAll[i - 1])) << IsaName(kAll[i]);
  }
}

TEST(IsaTest, EnvironmentCapsTheBestLevel) {
  const char* cap = std::getenv("TILEWIRE_MAX_ISA");
  if (cap == nullptr || !ParseIsa(cap).ok()) GTEST_SKIP() << "TILEWIRE_MAX_ISA is not set";
  EXPECT_LE(BestIsa(), ParseIsa(cap).value());
}

}  // namespace
}  // namespace tilewire::cpu
