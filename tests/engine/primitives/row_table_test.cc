// SPDX-License-Identifier: Apache-2.0
//
// Tables as they are written, expanded to rows.
#include "engine/primitives/row_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

struct NoDesc {};

absl::StatusOr<NoDesc> ResolveAny(const Request<NoDesc>& request) { return request.desc; }
absl::StatusOr<std::unique_ptr<Primitive>> CreateOne(const Request<NoDesc>&) { return nullptr; }
absl::StatusOr<std::unique_ptr<Primitive>> CreateOther(const Request<NoDesc>&) { return nullptr; }

constexpr RowKinds<NoDesc> kShared = {{"runs", ResolveAny, CreateOther, {.takes_prelu = true}}};
constexpr RowGroup<NoDesc> kGroups[] = {
    {{cpu::Isa::kAvx512Bf16}, {{"", ResolveAny, CreateOne}}},
    {kAvx512AndAvx2, {{"f32", ResolveAny, CreateOne}, {"u8", ResolveAny, CreateOther}}},
    {{cpu::Isa::kAmx}, kShared},
    {kAnyCpu, {{"reference", ResolveAny, CreateOne, {.is_reference = true}}}}};
constexpr RowTable<NoDesc, CountRows(kGroups)> kExpanded("some", kGroups);

TEST(RowTableTest, AGroupTakesItsInstructionSetsInTurn) {
  std::vector<std::string> names;
  for (const Implementation<NoDesc>& row : kExpanded.rows()) names.emplace_back(row.name);
  EXPECT_THAT(names, ::testing::ElementsAre("some/avx512_bf16", "some/avx512_f32", "some/avx512_u8",
                                            "some/avx2_f32", "some/avx2_u8", "some/amx_runs",
                                            "some/reference"));
}

TEST(RowTableTest, ARowHasWhatItsKindSays) {
  const absl::Span<const Implementation<NoDesc>> rows = kExpanded.rows();
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows[2].isa, cpu::Isa::kAvx512);
  EXPECT_EQ(rows[4].isa, cpu::Isa::kAvx2);
  EXPECT_EQ(rows[3].create, CreateOne);
  EXPECT_EQ(rows[4].create, CreateOther);
  EXPECT_TRUE(rows[5].traits.takes_prelu);
  EXPECT_FALSE(rows[5].traits.is_reference);
  EXPECT_EQ(rows[6].isa, cpu::Isa::kBaseline);
  EXPECT_TRUE(rows[6].traits.is_reference);
}

}  // namespace
}  // namespace tilewire::testing
