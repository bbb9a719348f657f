// SPDX-License-Identifier: Apache-2.0
//
// Every row of pooling's table against the reference, bit by bit: all of them add in the same
// order. The reference itself against numbers worked out by hand.
#include "engine/primitives/pooling/pooling.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/threading/arena.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/support/random_tensor.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

constexpr PoolingAlgorithm kPoolingAlgorithms[] = {PoolingAlgorithm::kMax,
                                                   PoolingAlgorithm::kAvgIncludePadding,
                                                   PoolingAlgorithm::kAvgExcludePadding};

struct PoolingCase {
  const char* why;
  Dims src, out;  // src: N, C, spatial; out: spatial
  Dims kernel, strides, left, right;
};

// Padding on the right that rounding up leaves is not part of `right`.
const std::vector<PoolingCase>& PoolingCases() {
  static const auto* const cases = new std::vector<PoolingCase>{
      {"Paddle: 4 to 2, rounded up", {10, 1, 4, 4}, {2, 2}, {3, 3}, {2, 2}, {0, 0}, {0, 0}},
      {"Paddle: 16 to 8", {2, 8, 16, 16}, {8, 8}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
      {"Paddle: 5 to 3, padded", {4, 2, 5, 5}, {3, 3}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {"Paddle: 56 to 28", {2, 33, 56, 56}, {28, 28}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
      {"Paddle: 56 to 28, overlapping, rounded up",
       {1, 4, 56, 56},
       {28, 28},
       {3, 3},
       {2, 2},
       {0, 0},
       {0, 0}},
      {"Paddle: 14 to 7", {2, 40, 14, 14}, {7, 7}, {3, 3}, {2, 2}, {0, 0}, {0, 0}},
      {"Paddle: 7 to 1", {2, 24, 7, 7}, {1, 1}, {7, 7}, {1, 1}, {0, 0}, {0, 0}},
      {"short rows: groups of channels at once, and what is left of them",
       {2, 149, 7, 7},
       {1, 1},
       {7, 7},
       {1, 1},
       {0, 0},
       {0, 0}},
      {"short rows with edges", {1, 72, 5, 5}, {3, 3}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {"Paddle: 5 to 3, large window", {2, 16, 5, 5}, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1}},
      {"Paddle: 56 to 29, rounded up with padding",
       {1, 3, 56, 56},
       {29, 29},
       {3, 3},
       {2, 2},
       {1, 1},
       {1, 1}},
      {"one channel under a block", {1, 15, 6, 9}, {6, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"one channel over a block", {3, 17, 8, 40}, {8, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"paddings that differ, window not square",
       {1, 16, 7, 11},
       {4, 6},
       {3, 2},
       {2, 2},
       {2, 0},
       {0, 1}},
      {"window larger than src", {1, 5, 2, 3}, {1, 1}, {5, 7}, {1, 1}, {2, 3}, {1, 1}},
      {"one pixel", {1, 1, 1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
      {"stride over the window", {1, 20, 9, 20}, {3, 5}, {1, 2}, {4, 4}, {0, 0}, {0, 0}},
      {"one dimension", {2, 19, 23}, {12}, {3}, {2}, {1}, {1}},
      {"three dimensions", {2, 18, 5, 6, 7}, {3, 3, 4}, {3, 2, 3}, {2, 2, 2}, {1, 0, 1}, {1, 0, 1}},
      {"global, three dimensions",
       {1, 33, 3, 4, 5},
       {1, 1, 1},
       {3, 4, 5},
       {1, 1, 1},
       {0, 0, 0},
       {0, 0, 0}},
      {"no image", {0, 8, 4, 4}, {2, 2}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
  };
  return *cases;
}

// A tensor and the buffer it lives in; garbage wherever nothing was written.
struct Tensor {
  explicit Tensor(const MemoryDesc& d) : desc(d), bytes(d.SizeBytes() + 64, '\x5A') {}
  float* values() { return reinterpret_cast<float*>(bytes.data()); }
  MemoryDesc desc;
  std::vector<char> bytes;
};

// body(index, is padding) over the padded tensor.
template <typename Body>
void ForEachPadded(const MemoryDesc& desc, Body body) {
  Dims index(desc.rank(), 0);
  int64_t left = 1;
  for (int64_t size : desc.padded_dims()) left *= size;
  for (; left > 0; --left) {
    bool padding = false;
    for (int d = 0; d < desc.rank(); ++d) padding |= index[d] >= desc.dim(d);
    body(index, padding);
    for (int d = desc.rank() - 1; d >= 0 && ++index[d] == desc.padded_dims()[d]; --d) index[d] = 0;
  }
}

bool IsReal(DataType type) { return type == DataType::kF32 || type == DataType::kBf16; }

// Random elements of any magnitude that the type has; floats in [-3, 1), one in `nan_every` is NaN
// (0: none).
void SetRandom(DataType type, uint64_t key, int64_t nan_every, void* base, int64_t offset) {
  Random random(key);
  if (IsReal(type)) {
    float value = random.Uniform(-3, 1);
    if (nan_every > 0 && key % static_cast<uint64_t>(nan_every) == 0) {
      value = std::copysign(std::numeric_limits<float>::quiet_NaN(), key % 2 == 0 ? 1.0f : -1.0f);
    }
    return StoreElement(type, value, base, offset);
  }
  const uint64_t bits = random.Next();
  CopyElement(type, &bits, 0, base, offset);
}

// The same values for the same indices, whatever the layout.
Tensor RandomSource(const MemoryDesc& desc, int64_t nan_every) {
  Tensor tensor(desc);
  ForEachPadded(desc, [&](const Dims& index, bool padding) {
    const int64_t offset = desc.Offset(index);
    if (padding) return StoreElement(desc.data_type(), 0, tensor.bytes.data(), offset);
    uint64_t key = 1;
    for (int64_t i : index) key = key * 1009 + static_cast<uint64_t>(i);
    SetRandom(desc.data_type(), key, nan_every, tensor.bytes.data(), offset);
  });
  return tensor;
}

PoolingDesc DescOf(const PoolingCase& c, PoolingAlgorithm algorithm, absl::string_view pattern,
                   DataType type = DataType::kF32) {
  PoolingDesc desc;
  desc.algorithm = algorithm;
  desc.src = *MemoryDesc::CreatePattern(c.src, type, pattern);
  Dims dst = {c.src[0], c.src[1]};
  dst.insert(dst.end(), c.out.begin(), c.out.end());
  desc.dst = *MemoryDesc::CreateAny(dst, type);
  desc.kernel = c.kernel;
  desc.strides = c.strides;
  desc.padding_left = c.left;
  desc.padding_right = c.right;
  return desc;
}

std::vector<std::string> Patterns(int rank) {
  const std::string space = std::string("cde").substr(0, rank - 2);
  return {"ab" + space, "a" + space + "b", "aB" + space + "16b", "aB" + space + "8b",
          "aB" + space + "32b"};
}

Tensor Execute(const Primitive& primitive, Tensor src, const threading::Team& team) {
  Tensor dst(primitive.Desc(kArgDst));
  ExecuteArgs args;
  args.Set(kArgSrc, src.values()).Set(kArgDst, dst.values());
  EXPECT_TRUE(primitive.Execute(args, team).ok());
  return dst;
}

// Equal elements, or both NaN; padding of `actual` zero.
void ExpectSame(const Tensor& actual, const Tensor& expected) {
  int wrong = 0;
  const DataType type = actual.desc.data_type();
  const int64_t size = SizeOf(type);
  ForEachPadded(actual.desc, [&](const Dims& index, bool padding) {
    const char zeros[4] = {};
    const int64_t at = actual.desc.Offset(index);
    const void* base = padding ? zeros : expected.bytes.data();
    const int64_t from = padding ? 0 : expected.desc.Offset(index);
    if (std::memcmp(&actual.bytes[at * size], static_cast<const char*>(base) + from * size, size) ==
        0)
      return;
    const float a = LoadElement(type, actual.bytes.data(), at), e = LoadElement(type, base, from);
    const bool same = IsReal(type) && (a == e || (std::isnan(a) && std::isnan(e)));
    if (same || ++wrong > 3) return;
    ADD_FAILURE() << DimsToString(index) << (padding ? " (padding)" : "") << ": " << a << ", not "
                  << e;
  });
}

// The first pattern has pixels that are neighbours, which the plain rows take; the others have
// channels that are: the other generated rows take them, but that AVX2 needs a whole vector.
bool IsForRow(const PoolingCase& c, const Implementation<PoolingDesc>& row, size_t pattern,
              DataType type) {
  const bool is_for_bf16 = row.name == "pooling/avx512_maximum_of_bf16";
  if (type == DataType::kBf16 || is_for_bf16)
    return type == DataType::kBf16 && is_for_bf16 && pattern >= 2;
  if (row.traits.algorithm == pooling::kPlainRows) return pattern == 0;
  if (row.traits.is_integer != (type != DataType::kF32)) return false;
  return pattern >= 2 || (pattern == 1 && (row.isa.Includes(cpu::Isa::kAvx512) || c.src[1] >= 8));
}

void CompareRows(const PoolingCase& c, PoolingAlgorithm algorithm, DataType type) {
  const std::vector<std::string> patterns = Patterns(static_cast<int>(c.src.size()));
  const int64_t nan_every = algorithm == PoolingAlgorithm::kMax ? 11 : 0;
  const PoolingDesc plain = DescOf(c, algorithm, patterns[0], type);
  const auto reference = CreatePooling(plain, {}, {.reference_only = true});
  ASSERT_TRUE(reference.ok()) << reference.status();
  const Tensor expected =
      Execute(**reference, RandomSource(plain.src, nan_every), threading::Team::Serial());
  for (size_t p = 0; p < patterns.size(); ++p) {
    const PoolingDesc desc = DescOf(c, algorithm, patterns[p], type);
    const Tensor src = RandomSource(desc.src, nan_every);
    for (const auto& row : PoolingImplementations()) {
      if (!cpu::Supports(row.isa) || !row.traits.propagations.Has(desc.prop_kind)) continue;
      SCOPED_TRACE(std::string(row.name) + ", " + patterns[p]);
      const auto primitive =
          CreatePooling(desc, {.scratchpad_mode = ScratchpadMode::kUser}, {.only = row.name});
      if (row.isa != cpu::Isa::kBaseline && IsForRow(c, row, p, type)) {
        EXPECT_TRUE(primitive.ok()) << primitive.status();
      }
      CountCase(row.name, primitive.ok());
      if (absl::IsUnimplemented(primitive.status())) continue;
      ASSERT_TRUE(primitive.ok()) << primitive.status();
      ExpectSame(Execute(**primitive, src, threading::Team::Serial()), expected);
    }
  }
}

TEST(PoolingTest, EveryRowMatchesTheReferenceInEveryLayout) {
  for (const PoolingCase& c : PoolingCases()) {
    for (PoolingAlgorithm algorithm : kPoolingAlgorithms) {
      for (DataType type :
           {DataType::kF32, DataType::kBf16, DataType::kU8, DataType::kS8, DataType::kS32}) {
        if (type == DataType::kBf16 && algorithm != PoolingAlgorithm::kMax) continue;
        SCOPED_TRACE(std::string(c.why) + ", " + std::string(DataTypeName(type)));
        CompareRows(c, algorithm, type);
      }
    }
  }
}

// Averages that fall between two integers, and the largest and smallest integers there are.
TEST(PoolingTest, IntegersAreRoundedToNearestEven) {
  const PoolingCase c = {"by hand", {1, 1, 4}, {2}, {2}, {2}, {0}, {0}};
  const auto pool = [&](DataType type, auto src, PoolingAlgorithm algorithm) {
    const auto pooling =
        CreatePooling(DescOf(c, algorithm, "abc", type), {}, {.reference_only = true});
    EXPECT_TRUE(pooling.ok()) << pooling.status();
    decltype(src) dst(2);
    ExecuteArgs args;
    args.Set(kArgSrc, src.data()).Set(kArgDst, dst.data());
    EXPECT_TRUE((*pooling)->Execute(args, threading::Team::Serial()).ok());
    return dst;
  };
  using Bytes = std::vector<uint8_t>;
  using SignedBytes = std::vector<int8_t>;
  const auto kAverage = PoolingAlgorithm::kAvgExcludePadding;
  EXPECT_EQ(pool(DataType::kU8, Bytes{0, 1, 255, 254}, kAverage), (Bytes{0, 254}));
  EXPECT_EQ(pool(DataType::kS8, SignedBytes{-128, -127, 1, 2}, kAverage), (SignedBytes{-128, 2}));
  EXPECT_EQ(pool(DataType::kS8, SignedBytes{-128, -127, 1, 2}, PoolingAlgorithm::kMax),
            (SignedBytes{-127, 2}));
  EXPECT_EQ(pool(DataType::kS32, std::vector<int32_t>{1 << 20, 3, -7, -8}, kAverage),
            (std::vector<int32_t>{(1 << 19) + 2, -8}));
}

TEST(PoolingTest, ReferenceFollowsTheFormulas) {
  // 1 2 3 with padding 1 on the left and windows of 2: (pad 1) (1 2) (2 3)
  const PoolingCase c = {"by hand", {1, 1, 3}, {3}, {2}, {1}, {1}, {0}};
  const float expected[3][3] = {{1, 2, 3}, {0.5f, 1.5f, 2.5f}, {1, 1.5f, 2.5f}};
  for (int algorithm = 0; algorithm < 3; ++algorithm) {
    const auto pooling = CreatePooling(DescOf(c, kPoolingAlgorithms[algorithm], "abc"), {},
                                       {.reference_only = true});
    ASSERT_TRUE(pooling.ok()) << pooling.status();
    const float src[3] = {1, 2, 3};
    float dst[3];
    ExecuteArgs args;
    args.Set(kArgSrc, src).Set(kArgDst, dst);
    ASSERT_TRUE((*pooling)->Execute(args, threading::Team::Serial()).ok());
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(dst[i], expected[algorithm][i]) << algorithm << " at " << i;
  }
}

// Padding is not walked through, however much there is of it, and its taps are counted as they are.
TEST(PoolingTest, ReferencePassesOverPadding) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const PoolingCase c = {"padding", {1, 1, 1, 1, 2},   {1, 1, 1},        {kMost, kMost, 2},
                         {1, 1, 1}, {kMost - 1, 0, 0}, {0, kMost - 1, 0}};
  const float expected[3] = {5, 4 * 0x1p-60f, 4};
  for (int algorithm = 0; algorithm < 3; ++algorithm) {
    ASSERT_OK_AND_ASSIGN(const auto pooling,
                         CreatePooling(DescOf(c, kPoolingAlgorithms[algorithm], "abcde"), {},
                                       {.reference_only = true}));
    const float src[2] = {3, 5};
    float dst = 0;
    ExecuteArgs args;
    args.Set(kArgSrc, src).Set(kArgDst, &dst);
    ASSERT_THAT(pooling->Execute(args, threading::Team::Serial()), IsOk());
    EXPECT_EQ(dst, expected[algorithm]) << algorithm;
  }
}

TEST(PoolingTest, ReferenceSavesPlacesWithoutWalkingThroughPadding) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const PoolingCase c = {"padding", {1, 1, 3}, {1}, {kMost}, {1}, {kMost - 3}, {0}};
  PoolingDesc desc = DescOf(c, PoolingAlgorithm::kMax, "abc");
  desc.prop_kind = PropKind::kForwardTraining;
  ASSERT_OK_AND_ASSIGN(const auto pooling, CreatePooling(desc, {}, {.reference_only = true}));
  const float src[3] = {3, 7, 5};
  float dst = 0;
  int32_t place = 0;
  ASSERT_EQ(pooling->Desc(kArgWorkspace).SizeBytes(), sizeof(place));
  ExecuteArgs args;
  args.Set(kArgSrc, src).Set(kArgDst, &dst).Set(kArgWorkspace, &place);
  ASSERT_THAT(pooling->Execute(args, threading::Team::Serial()), IsOk());
  EXPECT_EQ(dst, 7);
  EXPECT_EQ(place, kMost - 2);
}

TEST(PoolingTest, BitsDependNeitherOnThreadsNorOnTheBatch) {
  threading::Arena arena(2);
  PoolingCase c = {"batch of three", {3, 33, 15, 17}, {8, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}};
  for (const std::string& pattern : Patterns(4)) {
    const PoolingDesc desc = DescOf(c, PoolingAlgorithm::kAvgExcludePadding, pattern);
    const auto many = CreatePooling(desc, {}, {});
    ASSERT_TRUE(many.ok()) << many.status();
    const Tensor src = RandomSource(desc.src, 0);
    Tensor alone = Execute(**many, src, threading::Team::Serial());
    Tensor together = Execute(**many, src, threading::Team(&arena));
    EXPECT_EQ(alone.bytes, together.bytes) << pattern;
    PoolingCase one = c;
    one.src[0] = 1;
    const PoolingDesc one_desc = DescOf(one, PoolingAlgorithm::kAvgExcludePadding, pattern);
    const auto single = CreatePooling(one_desc, {}, {});
    ASSERT_TRUE(single.ok()) << single.status();
    Tensor first = Execute(**single, RandomSource(one_desc.src, 0), threading::Team::Serial());
    EXPECT_EQ(std::memcmp(first.values(), alone.values(), first.desc.SizeBytes()), 0) << pattern;
  }
}

TEST(PoolingTest, StridedTensorsTakeTheReference) {
  const PoolingCase c = {"strided", {2, 3, 4, 4}, {2, 2}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  PoolingDesc desc = DescOf(c, PoolingAlgorithm::kMax, "abcd");
  const auto plain = CreatePooling(desc, {}, {});
  ASSERT_TRUE(plain.ok()) << plain.status();
  const Tensor expected = Execute(**plain, RandomSource(desc.src, 0), threading::Team::Serial());
  desc.src = *MemoryDesc::CreateStrided(c.src, DataType::kF32, {200, 60, 14, 2});
  desc.dst = *MemoryDesc::CreateStrided({2, 3, 2, 2}, DataType::kF32, {20, 5, 2, 1});
  const auto strided = CreatePooling(desc, {}, {});
  ASSERT_TRUE(strided.ok()) << strided.status();
  EXPECT_TRUE((*strided)->info().traits.is_reference);
  ExpectSame(Execute(**strided, RandomSource(desc.src, 0), threading::Team::Serial()), expected);
}

TEST(PoolingTest, CreationSaysWhatDoesNotFit) {
  const PoolingCase c = {"valid", {1, 4, 6, 6}, {3, 3}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  const PoolingDesc valid = DescOf(c, PoolingAlgorithm::kMax, "abcd");
  const auto code = [](const PoolingDesc& desc, const Attributes& attributes = {}) {
    return CreatePooling(desc, attributes, {}).status().code();
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code(valid), Code::kOk);
  PoolingDesc desc = valid;
  desc.dst = *MemoryDesc::CreateAny({1, 4, 5, 3}, DataType::kF32);
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "a dst of another size";
  desc.dst = *MemoryDesc::CreateAny({1, 5, 3, 3}, DataType::kF32);
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "other channels";
  desc = valid;
  desc.padding_left = {2, 0};
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "a window wholly in the padding";
  desc = valid;
  desc.kernel = {0, 2};
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "an empty window";
  desc.kernel = {2};
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "a kernel of another rank";
  desc = valid;
  desc.strides = {0, 2};
  EXPECT_EQ(code(desc), Code::kInvalidArgument) << "no stride";
  desc = valid;
  desc.prop_kind = PropKind::kBackwardData;
  EXPECT_FALSE(CreatePooling(desc, {}, {}).ok()) << "backward";
  desc = valid;
  desc.algorithm = PoolingAlgorithm::kAvgIncludePadding;
  desc.src = *MemoryDesc::Create({1, 4, 6, 6}, DataType::kBf16, FormatTag::k_nchw);
  desc.dst = *MemoryDesc::CreateAny({1, 4, 3, 3}, DataType::kBf16);
  const absl::Status bf16 = CreatePooling(desc, {}, {}).status();
  EXPECT_EQ(bf16.code(), Code::kUnimplemented);
  EXPECT_NE(bf16.message().find("bf16"), std::string::npos) << bf16;
  desc.algorithm = valid.algorithm;
  desc.src = valid.src;
  EXPECT_EQ(code(desc), Code::kUnimplemented) << "types that differ";
  Attributes relu;
  ASSERT_TRUE(relu.post_ops.Append(EltwisePostOp{}).ok());
  EXPECT_EQ(code(valid, relu), Code::kUnimplemented);
}

// Its windows lie in the padding alone: the kernels ran past both ends of such a source.
TEST(PoolingTest, ASourceWithoutRowsIsRefused) {
  for (const char* pattern : {"abcd", "acdb", "aBcd16b"}) {
    PoolingDesc desc{.src = *MemoryDesc::CreatePattern({1, 9, 0, 2}, DataType::kF32, pattern),
                     .dst = *MemoryDesc::CreatePattern({1, 9, 1, 2}, DataType::kF32, pattern),
                     .kernel = {3, 3},
                     .strides = {1, 1},
                     .padding_left = {1, 1},
                     .padding_right = {1, 1}};
    const absl::Status status = CreatePooling(desc, {}, {}).status();
    EXPECT_EQ(status.message(), "spatial dimension 0 of src is empty");
    desc.src = *MemoryDesc::CreatePattern({1, 9, 1, 2}, DataType::kF32, pattern);
    EXPECT_TRUE(CreatePooling(desc, {}, {}).ok());
  }
}

TEST(PoolingTest, KeysTellDescriptorsApart) {
  const PoolingCase c = {"valid", {1, 4, 6, 6}, {3, 3}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  const PoolingDesc desc = DescOf(c, PoolingAlgorithm::kMax, "abcd");
  PoolingDesc average = desc, padded = desc;
  average.algorithm = PoolingAlgorithm::kAvgIncludePadding;
  padded.padding_right = {1, 1};
  std::string keys[4];
  AppendKey(desc, &keys[0]);
  AppendKey(average, &keys[1]);
  AppendKey(padded, &keys[2]);
  AppendKey(desc, &keys[3]);
  EXPECT_EQ(keys[0], keys[3]);
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_NE(keys[0], keys[2]);
}

}  // namespace
}  // namespace tilewire::testing
