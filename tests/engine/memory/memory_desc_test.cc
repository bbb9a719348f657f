// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/memory_desc.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "engine/memory/memory.h"
#include "engine/memory/workspace_tag.h"
#include "engine/memory/zero_padding.h"
#include "tests/support/padded_tail.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

MemoryDesc Make(Dims dims, FormatTag tag, DataType type = DataType::kF32) {
  return *MemoryDesc::Create(std::move(dims), type, tag);
}

// Seed 000's formulas, with the padded C in the term of n.
TEST(MemoryDescTest, OffsetsAreThoseOfTheFormatDocument) {
  const int64_t N = 2, C = 17, H = 5, W = 4;
  for (const int64_t block : {8, 16}) {
    const MemoryDesc blocked =
        Make({N, C, H, W}, block == 8 ? FormatTag::k_nChw8c : FormatTag::k_nChw16c);
    const MemoryDesc nchw = Make({N, C, H, W}, FormatTag::k_nchw);
    const MemoryDesc nhwc = Make({N, C, H, W}, FormatTag::k_nhwc);
    const MemoryDesc chwn = Make({N, C, H, W}, FormatTag::k_chwn);
    const int64_t padded = RoundUp(C, block);
    EXPECT_EQ(blocked.padded_dims(), Dims({N, padded, H, W}));
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t c = 0; c < C; ++c) {
        for (int64_t h = 0; h < H; ++h) {
          for (int64_t w = 0; w < W; ++w) {
            EXPECT_EQ(nchw.Offset({n, c, h, w}), n * C * H * W + c * H * W + h * W + w);
            EXPECT_EQ(nhwc.Offset({n, c, h, w}), n * H * W * C + h * W * C + w * C + c);
            EXPECT_EQ(chwn.Offset({n, c, h, w}), c * H * W * N + h * W * N + w * N + n);
            EXPECT_EQ(blocked.Offset({n, c, h, w}), n * padded * H * W + c / block * H * W * block +
                                                        h * W * block + w * block + c % block);
          }
        }
      }
    }
  }
}

TEST(MemoryDescTest, BlocksOnOneDimensionNest) {
  const MemoryDesc desc = Make({16, 16, 1, 1}, FormatTag::k_OIhw4i16o4i);
  for (int64_t o = 0; o < 16; ++o) {
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(desc.Offset({o, i, 0, 0}), i / 4 * 64 + o * 4 + i % 4);
    }
  }
}

TEST(MemoryDescTest, EveryTagPlacesEveryPaddedElementExactlyOnce) {
  for (const FormatTagRow& row : FormatTags()) {
    SCOPED_TRACE(row.name);
    const Dims all = {3, 5, 2, 3, 2, 2};
    const MemoryDesc desc = Make(Dims(all.begin(), all.begin() + FormatTagRank(row.tag)), row.tag);
    std::vector<bool> taken(desc.PaddedElementCount(), false);
    Dims index(desc.rank(), 0);
    for (int64_t i = 0; i < desc.PaddedElementCount(); ++i) {
      const int64_t offset = desc.Offset(index);
      ASSERT_LT(offset, taken.size());
      ASSERT_FALSE(taken[offset]);
      taken[offset] = true;
      for (int d = desc.rank() - 1; d >= 0 && ++index[d] == desc.padded_dims()[d]; --d)
        index[d] = 0;
    }
    EXPECT_EQ(desc.SizeBytes(), desc.PaddedElementCount() * 4);
    EXPECT_FALSE(desc.Overlaps());
  }
}

TEST(MemoryDescTest, SizesCountPaddingAndStrides) {
  EXPECT_EQ(MemoryDesc().SizeBytes(), 0);
  EXPECT_EQ(Make({2, 17, 5, 4}, FormatTag::k_nChw16c).SizeBytes(), 2 * 32 * 20 * 4);
  EXPECT_EQ(Make({2, 17, 5, 4}, FormatTag::k_nChw8c, DataType::kU8).SizeBytes(), 2 * 24 * 20);
  EXPECT_EQ(Make({0, 17, 5, 4}, FormatTag::k_nChw16c).SizeBytes(), 0);
  const absl::StatusOr<MemoryDesc> rows =
      MemoryDesc::CreateStrided({3, 4}, DataType::kF32, {10, 2});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->SizeBytes(), (2 * 10 + 3 * 2 + 1) * 4);
  EXPECT_FALSE(rows->IsDense());
  EXPECT_EQ(MemoryDesc::CreateAny({1, 2}, DataType::kF32)->SizeBytes(), 0);
  EXPECT_EQ(MemoryDesc::CreateStrided({5, 4}, DataType::kF32, {0, 1})->SizeBytes(), 16);
}

TEST(MemoryDescTest, WinogradWeightsAreOpaque) {
  const WinogradLayout layout{.tile = 4, .lanes = 16, .panel_blocks = 2};
  const MemoryDesc desc = *MemoryDesc::CreateWinograd({40, 20, 3, 3}, layout);
  EXPECT_EQ(desc.SizeBytes(), 36 * 48 * 32 * 4);
  EXPECT_EQ(desc.ToString(), "f32:40x20x3x3:winograd_4x3");
  EXPECT_FALSE(desc.IsPlain() || desc.IsDense() || desc.HasPadding() || desc.IsAny());
  const MemoryDesc narrow = *MemoryDesc::CreateWinograd({40, 20, 3, 3}, {4, 16, 1});
  EXPECT_FALSE(desc == narrow);
  std::string key, other_key;
  desc.AppendKey(&key);
  narrow.AppendKey(&other_key);
  EXPECT_NE(key, other_key);
  EXPECT_FALSE(desc.WithDataType(DataType::kS8).ok());
  EXPECT_FALSE(desc.Permuted({1, 0, 2, 3}).ok());
  EXPECT_FALSE(desc.SubMemory({16, 16, 3, 3}, {0, 0, 0, 0}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd({40, 20, 5, 5}, layout).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd({40, 20, 3}, layout).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd({int64_t{1} << 40, 1 << 20, 3, 3}, layout).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd({40, 20, 3, 3}, {6, 16, 2}).ok());
}

TEST(MemoryDescTest, WorkspacesAreBytesOfATag) {
  const MemoryDesc desc = *MemoryDesc::CreateWorkspace(100, 0xabc);
  EXPECT_EQ(desc.format_kind(), FormatKind::kWorkspace);
  EXPECT_EQ(desc.SizeBytes(), 100);
  EXPECT_EQ(desc.ToString(), "u8:100:workspace_0000000000000abc");
  EXPECT_TRUE(desc.IsOpaque());
  EXPECT_FALSE(desc.IsPlain() || desc.IsDense() || desc.HasPadding() || desc.IsAny() ||
               desc.IsZero());
  const MemoryDesc other = *MemoryDesc::CreateWorkspace(100, 0xabd);
  EXPECT_FALSE(desc == other);
  EXPECT_TRUE(desc == *MemoryDesc::CreateWorkspace(100, 0xabc));
  std::string key, other_key, plain_key;
  desc.AppendKey(&key);
  other.AppendKey(&other_key);
  MemoryDesc::CreatePattern({100}, DataType::kU8, "a")->AppendKey(&plain_key);
  EXPECT_NE(key, other_key);
  EXPECT_NE(key, plain_key);
  EXPECT_TRUE(desc.WithDataType(DataType::kU8).ok());
  EXPECT_FALSE(desc.WithDataType(DataType::kF32).ok());
  EXPECT_FALSE(desc.Permuted({0}).ok());
  EXPECT_FALSE(desc.SubMemory({50}, {0}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWorkspace(-1, 0).ok());
  EXPECT_EQ(MemoryDesc::CreateWorkspace(0, 1)->SizeBytes(), 0);
}

TEST(WorkspaceTagTest, HashesDependOnTheNameAndTheKey) {
  EXPECT_EQ(HashWorkspace("places", "2x2"), HashWorkspace("places", "2x2"));
  EXPECT_NE(HashWorkspace("places", "2x2"), HashWorkspace("places", "3x3"));
  EXPECT_NE(HashWorkspace("ab", "c"), HashWorkspace("a", "bc"));
  EXPECT_EQ(WorkspaceTagName(UINT64_MAX), "workspace_ffffffffffffffff");
}

TEST(MemoryDescTest, WinogradWeightsMayBePlanes) {
  const WinogradLayout layout{.tile = 4, .lanes = 16, .panel_blocks = 2, .planes = 3};
  const Dims dims = {40, 20, 3, 3};
  const MemoryDesc desc = *MemoryDesc::CreateWinograd(dims, layout);
  // A step of 32 channels and two groups of 32 outputs, and a byte for each.
  EXPECT_EQ(desc.SizeBytes(), 36 * 32 * 64 * 3 * 2 + 36 * 2);
  EXPECT_EQ(desc.ToString(), "f32:40x20x3x3:winograd_4x3_planes_3");
  EXPECT_TRUE(desc.IsOpaque());
  const MemoryDesc numbers = *MemoryDesc::CreateWinograd(dims, {4, 16, 2});
  EXPECT_EQ(desc.Unsplit(), numbers);
  std::string key, numbers_key;
  desc.AppendKey(&key);
  numbers.AppendKey(&numbers_key);
  EXPECT_NE(key, numbers_key);
  EXPECT_FALSE(MemoryDesc::CreateWinograd(dims, {4, 16, 2, 4}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd(dims, {4, 16, 2, -1}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd(dims, {4, 8, 2, 3}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd(dims, {4, 16, 1, 3}).ok());
  EXPECT_FALSE(MemoryDesc::CreateWinograd({int64_t{1} << 40, 1 << 12, 3, 3}, layout).ok());
}

TEST(MemoryDescTest, PlanesOfWeightsAreOpaque) {
  const MemoryDesc numbers =
      *MemoryDesc::Create({40, 20, 3, 3}, DataType::kF32, FormatTag::k_OIhw16i16o);
  const PlaneLayout layout = {.planes = 2, .matrices = 1, .outputs = 40, .taps = 9, .channels = 32};
  const MemoryDesc desc = *MemoryDesc::CreatePlanes(numbers, layout);
  EXPECT_EQ(desc.SizeBytes(), 9 * 32 * 64 * 2 * 2 + 2);
  EXPECT_EQ(desc.ToString(), "f32:40x20x3x3:planes_2");
  EXPECT_EQ(desc.Unsplit(), numbers);
  EXPECT_FALSE(desc.IsPlain() || desc.IsDense() || desc.IsAny());
  PlaneLayout other = layout;
  other.planes = 3;
  std::string key, other_key, numbers_key;
  desc.AppendKey(&key);
  MemoryDesc::CreatePlanes(numbers, other)->AppendKey(&other_key);
  numbers.AppendKey(&numbers_key);
  EXPECT_TRUE(key != other_key && key != numbers_key);
  EXPECT_FALSE(desc.WithDataType(DataType::kS8).ok());
  EXPECT_FALSE(desc.Permuted({1, 0, 2, 3}).ok());
  EXPECT_FALSE(desc.SubMemory({16, 16, 3, 3}, {0, 0, 0, 0}).ok());
  other.planes = 4;
  EXPECT_FALSE(MemoryDesc::CreatePlanes(numbers, other).ok());
  other = layout;
  other.taps = 3;
  EXPECT_FALSE(MemoryDesc::CreatePlanes(numbers, other).ok());
  EXPECT_FALSE(MemoryDesc::CreatePlanes(desc, layout).ok());
  EXPECT_FALSE(MemoryDesc::CreatePlanes(*numbers.WithDataType(DataType::kS32), layout).ok());
}

TEST(MemoryDescTest, HostileDescriptorsAreRefused) {
  const int64_t big = int64_t{1} << 40, max = std::numeric_limits<int64_t>::max();
  const auto create = [](Dims dims, FormatTag tag) {
    return MemoryDesc::Create(std::move(dims), DataType::kF32, tag);
  };
  EXPECT_THAT(create({}, FormatTag::k_a), StatusIs(kInvalid));
  EXPECT_THAT(create({1, 2, 3}, FormatTag::k_nchw), StatusIs(kInvalid, "rank 4"));
  EXPECT_THAT(create({1, 2, 3, 4}, FormatTag::k_nChw16c).status(), IsOk());
  EXPECT_THAT(create({1, -2, 3, 4}, FormatTag::k_nchw), StatusIs(kInvalid, "[1,-2,3,4]"));
  EXPECT_THAT(create({big, big, 1, 1}, FormatTag::k_nchw), StatusIs(kInvalid, "overflow"));
  EXPECT_THAT(create({max / 4 + 1}, FormatTag::k_x), StatusIs(kInvalid, "overflow"));
  EXPECT_THAT(create({1, max, 1, 1}, FormatTag::k_nChw16c), StatusIs(kInvalid, "overflow"));
  EXPECT_THAT(create({0, big, big, 1}, FormatTag::k_nchw), StatusIs(kInvalid, "overflow"));
  EXPECT_THAT(create({1}, FormatTag::kUndef), StatusIs(kInvalid));
  EXPECT_THAT(MemoryDesc::CreateAny({big, big}, DataType::kF32), StatusIs(kInvalid));
  EXPECT_THAT(MemoryDesc::CreateAny(Dims(13, 1), DataType::kF32), StatusIs(kInvalid, "rank 13"));
  EXPECT_THAT(MemoryDesc::Create({1}, DataType::kUndef, FormatTag::k_x), StatusIs(kInvalid));
  EXPECT_THAT(MemoryDesc::CreateStrided({2, 2}, DataType::kF32, {1}), StatusIs(kInvalid, "rank"));
  EXPECT_THAT(MemoryDesc::CreateStrided({2, 2}, DataType::kF32, {-1, 1}),
              StatusIs(kInvalid, "negative"));
  EXPECT_THAT(MemoryDesc::CreateStrided({3, 2}, DataType::kF32, {max, 1}), StatusIs(kInvalid));
  EXPECT_THAT(MemoryDesc::CreateStrided({big, big}, DataType::kF32, {0, 0}), StatusIs(kInvalid));
}

TEST(MemoryDescTest, MalformedPatternsAreRefused) {
  for (const char* pattern : {"", "ac", "aab", "aB", "ab8a", "aB0b", "aB1b", "aB8c", "aB8", "aB8b8",
                              "aB99999999999999999999b", "aB65536b65536b", "a b", "ab8b"}) {
    EXPECT_THAT(MemoryDesc::CreatePattern({2, 2}, DataType::kF32, pattern), StatusIs(kInvalid))
        << pattern;
  }
}

TEST(MemoryDescTest, PartsAreViews) {
  const MemoryDesc whole = Make({2, 40, 5, 4}, FormatTag::k_nChw16c);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc part, whole.SubMemory({1, 24, 2, 3}, {1, 16, 3, 1}));
  EXPECT_EQ(part.padded_dims(), Dims({1, 32, 2, 3}));
  for (int64_t c = 0; c < 24; ++c) {
    EXPECT_EQ(part.Offset({0, c, 1, 2}), whole.Offset({1, c + 16, 4, 3}));
  }
  EXPECT_LE(part.SizeBytes(), whole.SizeBytes());
  EXPECT_THAT(whole.SubMemory({2, 8, 5, 4}, {0, 8, 0, 0}), StatusIs(kInvalid, "cuts a block"));
  EXPECT_THAT(whole.SubMemory({2, 8, 5, 4}, {0, 16, 0, 0}), StatusIs(kInvalid, "cuts a block"));
  EXPECT_THAT(whole.SubMemory({2, 16, 5, 4}, {0, 32, 0, 0}), StatusIs(kInvalid, "leaves"));
  EXPECT_THAT(whole.SubMemory({2, 16, 5, 4}, {0, -16, 0, 0}), StatusIs(kInvalid));
  EXPECT_THAT(whole.SubMemory({2, 16, 5}, {0, 0, 0}), StatusIs(kInvalid, "rank"));
  EXPECT_THAT(MemoryDesc().SubMemory({}, {}), StatusIs(kInvalid));
}

TEST(MemoryDescTest, StridesOfALargerTensorMoveTheBlocksApart) {
  const MemoryDesc whole = Make({2, 40, 5, 4}, FormatTag::k_nChw16c);
  const MemoryDesc dense = Make({2, 24, 5, 4}, FormatTag::k_nChw16c);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc apart, dense.WithStrides(whole.strides()));
  EXPECT_EQ(apart.Offset({0, 17, 4, 3}), dense.Offset({0, 17, 4, 3}));
  EXPECT_EQ(apart.Offset({1, 17, 4, 3}), whole.Offset({1, 17, 4, 3}));
  EXPECT_FALSE(apart.IsDense());
  EXPECT_EQ(apart.padded_dims(), dense.padded_dims());
  ASSERT_OK_AND_ASSIGN(const MemoryDesc part, whole.SubMemory({2, 16, 5, 4}, {0, 16, 0, 0}));
  ASSERT_OK_AND_ASSIGN(const MemoryDesc moved, part.WithStrides(part.strides()));
  EXPECT_EQ(moved.offset0(), 0);
  EXPECT_THAT(dense.WithStrides({1, 2, 3}), StatusIs(kInvalid, "rank"));
  EXPECT_THAT(dense.WithStrides({1, 2, 3, -1}), StatusIs(kInvalid, "negative"));
  EXPECT_THAT(dense.WithStrides({int64_t{1} << 62, 1, 1, 1}), StatusIs(kInvalid, "overflow"));
  const MemoryDesc one = Make({1, 8}, FormatTag::k_nc);
  EXPECT_THAT(one.WithStrides({std::numeric_limits<int64_t>::max() - 1, 1}),
              StatusIs(kInvalid, "overflow"));
  EXPECT_THAT(MemoryDesc().WithStrides({}), StatusIs(kInvalid, "no strides"));
}

TEST(MemoryDescTest, OverlapIsExactForInterleavedStrides) {
  const auto overlaps = [](Dims dims, Dims strides) {
    return MemoryDesc::CreateStrided(std::move(dims), DataType::kF32, std::move(strides))
        ->Overlaps();
  };
  EXPECT_FALSE(overlaps({3, 4}, {4, 1}));
  EXPECT_FALSE(overlaps({3, 4}, {10, 2}));
  EXPECT_TRUE(overlaps({3, 4}, {3, 1}));
  EXPECT_TRUE(overlaps({3, 4}, {0, 1}));
  EXPECT_FALSE(overlaps({1, 4}, {0, 1}));  // the stride of one element is not used
  EXPECT_FALSE(overlaps({3, 2}, {2, 3}));  // 0 2 4 3 5 7
  EXPECT_TRUE(overlaps({4, 2}, {2, 4}));   // 0 2 4 6 4 ...
  EXPECT_FALSE(overlaps({0, 4}, {0, 0}));
}

TEST(MemoryDescTest, PermutedMovesNoElement) {
  const MemoryDesc oi = Make({5, 7, 3, 3}, FormatTag::k_OIhw4i16o4i);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc io, oi.Permuted({1, 0, 2, 3}));
  EXPECT_EQ(io.dims(), Dims({7, 5, 3, 3}));
  EXPECT_EQ(io.Offset({6, 4, 1, 2}), oi.Offset({4, 6, 1, 2}));
  EXPECT_EQ(Make({2, 3, 4, 5}, FormatTag::k_nhwc).Permuted({0, 2, 3, 1})->Tag(), FormatTag::k_nchw);
  EXPECT_THAT(oi.Permuted({0, 0, 2, 3}), StatusIs(kInvalid, "not a permutation"));
  EXPECT_THAT(oi.Permuted({0, 1}), StatusIs(kInvalid));
}

TEST(MemoryDescTest, TextsAndKeys) {
  EXPECT_EQ(Make({2, 17, 5, 5}, FormatTag::k_nChw16c).ToString(), "f32:2x17x5x5:nChw16c");
  EXPECT_EQ(Make({2, 3, 5, 5}, FormatTag::k_nhwc, DataType::kU8).ToString(), "u8:2x3x5x5:nhwc");
  EXPECT_EQ(MemoryDesc::CreateStrided({3, 4}, DataType::kF32, {10, 2})->ToString(),
            "f32:3x4:strides[10,2]");
  EXPECT_EQ(MemoryDesc::CreateAny({3, 4}, DataType::kS8)->ToString(), "s8:3x4:any");
  EXPECT_EQ(MemoryDesc().ToString(), "undef");
  std::set<std::string> keys;
  const MemoryDesc descs[] = {MemoryDesc(),
                              Make({2, 3}, FormatTag::k_nc),
                              Make({3, 2}, FormatTag::k_nc),
                              Make({2, 3}, FormatTag::k_cn),
                              Make({2, 3}, FormatTag::k_nc, DataType::kS32),
                              *MemoryDesc::CreateAny({2, 3}, DataType::kF32),
                              *Make({4, 3}, FormatTag::k_nc).SubMemory({2, 3}, {1, 0}),
                              Make({2, 3, 1, 1}, FormatTag::k_nChw16c),
                              Make({2, 3, 1, 1}, FormatTag::k_nChw8c),
                              Make({2, 3}, FormatTag::k_nc, DataType::kS8),
                              *Make({2, 3}, FormatTag::k_nc, DataType::kS8).WithCompensation(1),
                              *Make({2, 3}, FormatTag::k_nc, DataType::kS8).WithCompensation(2),
                              *Make({2, 3}, FormatTag::k_nc, DataType::kS8).WithBound(1),
                              *Make({2, 3}, FormatTag::k_nc, DataType::kS8).WithBound(2)};
  for (const MemoryDesc& desc : descs) {
    std::string key;
    desc.AppendKey(&key);
    EXPECT_TRUE(keys.insert(key).second) << desc.ToString();
  }
}

TEST(MemoryDescTest, CompensationLiesBehindTheElements) {
  const MemoryDesc weights = Make({2, 17, 5, 1, 3}, FormatTag::k_goihw, DataType::kS8);
  EXPECT_EQ(weights.SizeBytes(), 510);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc compensated, weights.WithCompensation(3));
  EXPECT_EQ(compensated.CompensationOffsetBytes(), 512);
  EXPECT_EQ(compensated.CompensationCount(), 34);
  EXPECT_EQ(compensated.SizeBytes(), 512 + 34 * 4);
  EXPECT_EQ(compensated.ToString(), "s8:2x17x5x1x3:ncdhw:compensation3");
  EXPECT_FALSE(compensated == weights);
  EXPECT_EQ(compensated.WithoutExtra(), weights);
  // The padded channels have theirs, too.
  ASSERT_OK_AND_ASSIGN(
      const MemoryDesc blocked,
      Make({17, 16, 1, 1}, FormatTag::k_OIhw4i16o4i, DataType::kS8).WithCompensation(1));
  EXPECT_EQ(blocked.SizeBytes(), 2 * 16 * 16 + 32 * 4);
  EXPECT_THAT(Make({2, 3}, FormatTag::k_nc).WithCompensation(1),
              StatusIs(kInvalid, "cannot carry"));
  EXPECT_THAT(compensated.WithCompensation(1), StatusIs(kInvalid, "cannot carry"));
  EXPECT_THAT(weights.WithCompensation(32), StatusIs(kInvalid, "mask 32"));
  EXPECT_THAT(compensated.SubMemory({1, 17, 5, 1, 3}, {1, 0, 0, 0, 0}), StatusIs(kInvalid));
}

TEST(MemoryDescTest, BoundsAreOfBytesAndChangeNoSize) {
  const MemoryDesc weights = Make({2, 17, 5, 1, 3}, FormatTag::k_goihw, DataType::kS8);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc bounded, weights.WithBound(64));
  EXPECT_EQ(bounded.SizeBytes(), weights.SizeBytes());
  EXPECT_EQ(bounded.ToString(), "s8:2x17x5x1x3:ncdhw:within64");
  EXPECT_FALSE(bounded == weights);
  EXPECT_EQ(bounded.WithoutBound(), weights);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc both, bounded.WithCompensation(3));
  EXPECT_EQ(both.ToString(), "s8:2x17x5x1x3:ncdhw:compensation3:within64");
  EXPECT_EQ(both.WithoutBound(), *weights.WithCompensation(3));
  EXPECT_EQ(both.WithoutExtra(), weights);
  EXPECT_THAT(MemoryDesc::CreateAny({2, 3}, DataType::kS8)->WithBound(64), IsOk());
  EXPECT_THAT(MemoryDesc::CreateAny({2, 3}, DataType::kU8)->WithBound(64),
              StatusIs(kInvalid, "cannot have a bound"));
  EXPECT_THAT(MemoryDesc().WithBound(64), StatusIs(kInvalid, "cannot have a bound"));
  EXPECT_THAT(weights.WithBound(0), StatusIs(kInvalid, "a bound of 0"));
  EXPECT_THAT(weights.WithBound(128), StatusIs(kInvalid, "allowed are 1 to 127"));
}

// A value in every byte, zeros where the padding is: counted against a walk over all padded
// indices.
TEST(ZeroPaddingTest, ClearsThePaddedTailAndNothingElseForEveryTag) {
  for (const FormatTagRow& row : FormatTags()) {
    SCOPED_TRACE(row.name);
    const Dims all = {3, 5, 2, 3, 2, 2};
    const MemoryDesc desc =
        Make(Dims(all.begin(), all.begin() + FormatTagRank(row.tag)), row.tag, DataType::kU8);
    std::vector<uint8_t> bytes(desc.SizeBytes(), 0xA5);
    EXPECT_EQ(PaddingIsZero(desc, bytes.data()), !desc.HasPadding());
    ZeroPadding(desc, bytes.data());
    EXPECT_TRUE(PaddingIsZero(desc, bytes.data()));
    Dims index(desc.rank(), 0);
    for (int64_t i = 0; i < desc.PaddedElementCount(); ++i) {
      bool inside = true;
      for (int d = 0; d < desc.rank(); ++d) inside = inside && index[d] < desc.dim(d);
      ASSERT_EQ(bytes[desc.Offset(index)], inside ? 0xA5 : 0) << DimsToString(index);
      for (int d = desc.rank() - 1; d >= 0 && ++index[d] == desc.padded_dims()[d]; --d)
        index[d] = 0;
    }
  }
}

TEST(MemoryTest, TakingBytesZeroesTheirPadding) {
  const MemoryDesc desc = Make({1, 17, 3, 3}, FormatTag::k_nChw16c);
  ASSERT_OK_AND_ASSIGN(Memory owned, Memory::Allocate(desc));
  EXPECT_TRUE(PaddingIsZero(desc, owned.data()));
  std::vector<float> bytes(desc.SizeBytes() / 4, 1.0f);
  Memory borrowed(desc, nullptr);
  EXPECT_EQ(borrowed.data(), nullptr);
  borrowed.SetData(bytes.data());
  EXPECT_TRUE(PaddingIsZero(desc, bytes.data()));
  EXPECT_EQ(borrowed.as<float>()[0], 1.0f);
  owned.SetData(bytes.data());
  EXPECT_EQ(owned.data(), bytes.data());
}

}  // namespace
}  // namespace tilewire::testing
