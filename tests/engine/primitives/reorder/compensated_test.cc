// SPDX-License-Identifier: Apache-2.0
//
// Weights that carry the sums which undo the 128 added to an s8 source.
#include <cstring>
#include <string>
#include <vector>

#include "engine/memory/index_walk.h"
#include "engine/primitives/reorder/reorder.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using threading::Team;

// -128 * (sum of the s8 elements that share an index), found by a walk over the plain weights.
std::vector<int32_t> Expected(const MemoryDesc& dst, const std::vector<int8_t>& weights,
                              int masked) {
  std::vector<int32_t> sums(dst.CompensationCount());
  const int8_t* weight = weights.data();
  ForEachIndex(dst.dims(), [&](const Dims& index) {
    int64_t at = 0;
    for (int d = 0; d < masked; ++d) at = at * dst.padded_dims()[d] + index[d];
    sums[at] -= 128 * *weight++;
  });
  return sums;
}

void ExpectCompensation(const Dims& dims, absl::string_view pattern, int mask) {
  SCOPED_TRACE(pattern);
  const MemoryDesc src =
      *MemoryDesc::CreatePattern(dims, DataType::kS8, std::string("abcdef").substr(0, dims.size()));
  const MemoryDesc packed = *MemoryDesc::CreatePattern(dims, DataType::kS8, pattern);
  const MemoryDesc dst = *packed.WithCompensation(mask);
  std::vector<int8_t> weights(src.ElementCount());
  FillIntegers(absl::MakeSpan(weights), 1, -128, 127);
  std::vector<uint8_t> bytes(dst.SizeBytes(), 0xA5), plain(packed.SizeBytes(), 0xA5);
  ASSERT_OK_AND_ASSIGN(const auto reorder, CreateReorder({src, dst}, {}, {}));
  EXPECT_EQ(reorder->name(), "reorder/compensated");
  ASSERT_OK_AND_ASSIGN(const auto copy, CreateReorder({src, packed}, {}, {}));
  threading::Arena arena(2);
  ExecuteArgs args;
  ASSERT_THAT(
      copy->Execute(args.Set(kArgSrc, weights.data()).Set(kArgDst, plain.data()), Team::Serial()),
      IsOk());
  ASSERT_THAT(reorder->Execute(args.Set(kArgDst, bytes.data()), Team(&arena)), IsOk());
  EXPECT_TRUE(std::equal(plain.begin(), plain.end(), bytes.begin()));
  std::vector<int32_t> sums(dst.CompensationCount());
  std::memcpy(sums.data(), bytes.data() + dst.CompensationOffsetBytes(),
              sums.size() * sizeof(int32_t));
  EXPECT_EQ(sums, Expected(dst, weights, mask == 1 ? 1 : 2));
}

TEST(CompensatedReorderTest, SumsAreThoseOfTheWeights) {
  ExpectCompensation({17, 20, 3, 3}, "abcd", 1);
  ExpectCompensation({17, 20, 3, 3}, "ABcd4b16a4b", 1);
  ExpectCompensation({40, 7, 5}, "ABc2b8a4b", 1);
  ExpectCompensation({3, 17, 20, 3, 3}, "aBCde4c16b4c", 3);
}

// As a model's f32 weights arrive: the sums are those of what was rounded and saturated.
TEST(CompensatedReorderTest, QuantisesOnTheWay) {
  const MemoryDesc src = *MemoryDesc::CreatePattern({2, 3}, DataType::kF32, "ab");
  const MemoryDesc dst =
      *MemoryDesc::CreatePattern({2, 3}, DataType::kS8, "ab")->WithCompensation(1);
  Attributes attributes;
  attributes.output_scales = {1, {2, 100}};
  ASSERT_OK_AND_ASSIGN(const auto reorder, CreateReorder({src, dst}, attributes, {}));
  const float weights[] = {1, -2, 0.75f, 1, -3, 0.01f};
  struct {
    int8_t weights[6];
    int32_t sums[2];
  } result;
  ASSERT_EQ(dst.SizeBytes(), sizeof(result));
  ExecuteArgs args;
  ASSERT_THAT(reorder->Execute(args.Set(kArgSrc, weights).Set(kArgDst, &result), Team::Serial()),
              IsOk());
  EXPECT_EQ(std::vector<int>(result.weights, result.weights + 6),
            (std::vector<int>{2, -4, 2, 100, -128, 1}));
  EXPECT_EQ(result.sums[0], 0);
  EXPECT_EQ(result.sums[1], -128 * -27);
}

TEST(CompensatedReorderTest, OtherRowsRefuse) {
  const MemoryDesc plain = *MemoryDesc::CreatePattern({2, 3}, DataType::kS8, "ab");
  const MemoryDesc compensated = *plain.WithCompensation(1);
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  EXPECT_THAT(CreateReorder({compensated, plain}, {}, {}),
              StatusIs(kUnimplemented, "src carries compensation"));
  for (const auto& row : ReorderImplementations()) {
    const bool takes = row.traits.algorithm == reorder::kCompensated;
    EXPECT_EQ(CreateReorder({plain, compensated}, {}, {.only = row.name}).ok(), takes) << row.name;
  }
}

}  // namespace
}  // namespace tilewire::testing
