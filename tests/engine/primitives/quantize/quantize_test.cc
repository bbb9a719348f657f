// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct Params {
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  std::vector<float> shifts = {};
};

// Rounds the quotient in double, which holds every quotient's neighbourhood of a half exactly.
float QuantizedNumber(float x, float scale, int zero_point, bool is_unsigned) {
  const double lowest = is_unsigned ? 0 : -128, highest = is_unsigned ? 255 : 127;
  if (std::isnan(x)) return static_cast<float>(lowest);
  const double quotient = static_cast<double>(x / scale);
  return static_cast<float>(
      std::clamp(std::clamp(std::nearbyint(quotient), -1e6, 1e6) + zero_point, lowest, highest));
}

// Halves, numbers beyond either end, and NaN.
std::vector<float> RealNumbers(int64_t count) {
  std::vector<float> values = RandomFloats(count, 3, -90, 90);
  const float special[] = {0.25f, -0.25f, 0.75f,  1.25f,  -0.0f,
                           1e30f, -1e30f, 127.5f, 63.75f, std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; i < values.size(); i += 3) values[i] = special[i / 3 % 10];
  return values;
}

class QuantizeTest : public RowTest<QuantizeDesc> {
 protected:
  QuantizeTest() : RowTest(CreateQuantize) {}

  // Whether the row takes scales of this kind.
  bool IsFor(quantize::Algorithm algorithm) const {
    const ImplementationTraits& traits = GetParam().traits;
    return traits.is_reference || traits.algorithm == algorithm;
  }

  void ExpectConversion(const MemoryDesc& src, const MemoryDesc& dst, int axis,
                        const Params& params) {
    SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString(), " axis ", axis));
    const auto primitive = Create({.src = src,
                                   .dst = dst,
                                   .axis = axis,
                                   .scales = params.scales,
                                   .zero_points = params.zero_points,
                                   .shifts = params.shifts});
    if (!primitive) return;
    const Bytes packed = src.data_type() == DataType::kF32
                             ? Pack(src, RealNumbers(src.ElementCount()))
                             : RandomTensor(src, 1);
    const std::vector<float> numbers = ElementValues(src, packed);
    std::vector<float> expected;
    ForEachIndex(src.dims(), [&](const Dims& index) {
      const size_t i = params.scales.size() == 1 ? 0 : index[axis];
      const float x = numbers[expected.size()], scale = params.scales[i];
      const int zero_point = params.zero_points[i];
      expected.push_back(
          dst.data_type() == DataType::kF32
              ? (x - static_cast<float>(zero_point)) * scale +
                    (params.shifts.empty() ? -0.0f : params.shifts[i])
              : QuantizedNumber(x, scale, zero_point, dst.data_type() == DataType::kU8));
    });
    const Bytes result = ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(dst, 7));
    const std::vector<float> got = ElementValues(dst, result);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << i;
      } else {
        ASSERT_EQ(got[i], expected[i]) << "element " << i << ", of " << numbers[i];
      }
    }
  }

  // To u8 by {scale, zero point}, with `left` and `right` zero points around it.
  void ExpectByRange(const MemoryDesc& src, absl::string_view dst_pattern, const Dims& left,
                     const Dims& right, const std::vector<float>& range) {
    Dims dims = src.dims();
    const size_t first = dims.size() - left.size();
    for (size_t i = 0; i < left.size(); ++i) dims[first + i] += left[i] + right[i];
    const MemoryDesc dst = *MemoryDesc::CreatePattern(dims, DataType::kU8, dst_pattern);
    SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString(), " ", range[1]));
    const MemoryDesc range_desc = Plain({2});
    const auto primitive = Create({.src = src,
                                   .dst = dst,
                                   .axis = 0,
                                   .scales = {},
                                   .zero_points = {},
                                   .range = range_desc,
                                   .padding_left = left});
    if (!primitive) return;
    const std::vector<float> numbers = RealNumbers(src.ElementCount());
    const Bytes packed = Pack(src, numbers), packed_range = Pack(range_desc, range);
    const Bytes result =
        ExecuteAllWays(*primitive, {{kArgSrc, &packed}, {kArgQuantizationRange, &packed_range}},
                       kArgDst, Garbage(dst, 7));
    const std::vector<float> got = ElementValues(dst, result);
    const MemoryDesc plain = Plain(src.dims());
    size_t at = 0;
    ForEachIndex(dims, [&](Dims index) {
      bool inside = true;
      for (size_t i = 0; i < left.size(); ++i) {
        index[first + i] -= left[i];
        inside = inside && index[first + i] >= 0 && index[first + i] < src.dim(first + i);
      }
      const float want = inside ? QuantizedNumber(numbers[plain.Offset(index)], range[0],
                                                  static_cast<int>(range[1]), true)
                                : range[1];
      ASSERT_EQ(got[at], want) << "element " << at;
      ++at;
    });
  }

  // Both ways of the type, with one scale, and with one per channel.
  void ExpectBothWays(const Dims& dims, size_t from, size_t to, DataType type) {
    const int highest = type == DataType::kU8 ? 255 : 127;
    Params channels;
    for (int64_t c = 0; c < dims[1]; ++c) {
      channels.scales.push_back(0.25f * static_cast<float>(c % 5 + 1));
      channels.zero_points.push_back(static_cast<int32_t>(c * 37 % (highest + 1)));
    }
    for (const Params& params : {Params{{0.5f}, {highest}}, Params{{0.7f}, {0}}, channels}) {
      for (const bool quantizes : {true, false}) {
        const DataType src = quantizes ? DataType::kF32 : type;
        const DataType dst = quantizes ? type : DataType::kF32;
        ExpectConversion(LayoutsOf(dims, src)[from].desc, LayoutsOf(dims, dst)[to].desc, 1, params);
      }
    }
  }
};

TEST_P(QuantizeTest, BothWaysInEveryLayout) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  for (const Dims& dims : ImageDims()) {
    for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout) {
      for (DataType type : {DataType::kU8, DataType::kS8})
        ExpectBothWays(dims, layout, layout, type);
    }
  }
}

TEST_P(QuantizeTest, LayoutsThatDiffer) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  const Dims dims = {2, 17, 3, 4};
  const size_t layouts = LayoutsOf(dims).size();
  for (size_t from = 0; from < layouts; ++from) {
    for (size_t to = 0; to < layouts; ++to) ExpectBothWays(dims, from, to, DataType::kU8);
  }
}

TEST_P(QuantizeTest, ByARangeOfRunTime) {
  if (!IsFor(quantize::kByRange)) GTEST_SKIP() << "is for other scales";
  const std::vector<float> ranges[] = {{0.5f, 0}, {0.7f, 117}, {0.25f, 255}};
  for (const std::vector<float>& range : ranges) {
    for (const Dims& dims : {Dims{2, 17, 3, 4}, Dims{1, 3, 33, 31}, Dims{2, 40, 9, 33}}) {
      for (const char* pattern : {"abcd", "acdb"}) {
        const MemoryDesc src = *MemoryDesc::CreatePattern(dims, DataType::kF32, pattern);
        ExpectByRange(src, pattern, {}, {}, range);
        ExpectByRange(src, pattern, {1, 2}, {0, 3}, range);
        ExpectByRange(src, pattern, {0, 0}, {2, 0}, range);
      }
      ExpectByRange(Plain(dims), "acdb", {1, 1}, {1, 1}, range);
    }
    ExpectByRange(*MemoryDesc::CreatePattern({2, 5, 4, 3, 6}, DataType::kF32, "acdeb"), "acdeb",
                  {1, 0, 2}, {1, 2, 0}, range);
    ExpectByRange(*MemoryDesc::CreatePattern({2, 5, 9}, DataType::kF32, "acb"), "acb", {3}, {1},
                  range);
    ExpectByRange(Plain({70}), "a", {}, {}, range);
  }
}

TEST_P(QuantizeTest, EveryAxis) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  const Dims dims = {3, 5, 7};
  for (int axis = 0; axis < 3; ++axis) {
    Params params{{}, std::vector<int32_t>(dims[axis], 5)};
    for (int64_t i = 0; i < dims[axis]; ++i) params.scales.push_back(0.5f + 0.25f * i);
    ExpectConversion(Plain(dims), Plain(dims, DataType::kS8), axis, params);
    ExpectConversion(Plain(dims, DataType::kU8), Plain(dims), axis, params);
  }
}

TEST_P(QuantizeTest, MoreThanOnePieceOfWork) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  const Dims dims = {2, 40, 33, 31};
  ExpectConversion(Plain(dims), Plain(dims, DataType::kU8), 1, {{0.7f}, {100}});
  ExpectConversion(Plain(dims, DataType::kS8), Plain(dims), 1, {{0.7f}, {100}});
}

TEST_P(QuantizeTest, IntegersHeldInF32AndTensorsWithoutElements) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  ExpectConversion(Plain({3, 40}), Plain({3, 40}), 0, {{0.5f}, {7}});
  ExpectConversion(Plain({0, 4}), Plain({0, 4}, DataType::kU8), 0, {{0.5f}, {7}});
}

TEST_P(QuantizeTest, AnyIsTheLayoutOfTheSource) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw8c");
  const auto primitive =
      Create({src, *MemoryDesc::CreateAny(src.dims(), DataType::kU8), 1, {1}, {0}});
  if (!primitive) GTEST_SKIP() << "gives real numbers alone";
  EXPECT_EQ(primitive->Desc(kArgDst), Tagged(src.dims(), "nChw8c", DataType::kU8));
}

// Pixels of three colours, and of so many channels that some repeat after several vectors.
TEST_P(QuantizeTest, ShiftsAreAddedToRealNumbers) {
  if (!IsFor(quantize::kKnownScales)) GTEST_SKIP() << "is for other scales";
  for (const int64_t channels : {1, 3, 5, 16, 40}) {
    const Dims dims = {2, channels, 5, 31};
    Params one{{0.7f}, {3}, {0.3f}}, each;
    for (int64_t c = 0; c < channels; ++c) {
      each.scales.push_back(0.25f * static_cast<float>(c % 5 + 1));
      each.zero_points.push_back(static_cast<int32_t>(c % 7));
      each.shifts.push_back(0.1f * static_cast<float>(c) - 1);
    }
    for (const Params& params : {one, each}) {
      for (const DataType src : {DataType::kU8, DataType::kS8, DataType::kF32}) {
        for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout)
          ExpectConversion(LayoutsOf(dims, src)[layout].desc, LayoutsOf(dims)[layout].desc, 1,
                           params);
      }
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Quantize);

TEST(QuantizeErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc real = Plain({4, 5}), bytes = Plain({4, 5}, DataType::kU8);
  const auto status = StatusOfCreating(CreateQuantize);
  EXPECT_THAT(status({real, bytes, 9, {1}, {0}}), IsOk());
  EXPECT_THAT(status({real, bytes, 2, {1, 1}, {0, 0}}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({real, bytes, 0, {1, 1}, {0, 0}}), StatusIs(kInvalid, "2 scales"));
  EXPECT_THAT(status({real, bytes, 0, {1}, {}}), StatusIs(kInvalid, "0 zero points"));
  EXPECT_THAT(status({real, bytes, 0, {1}, {0}, {}, {}, {1}}), StatusIs(kInvalid, "1 shifts"));
  EXPECT_THAT(status({bytes, real, 0, {1}, {0}, {}, {}, {1, 2}}), StatusIs(kInvalid, "2 shifts"));
  EXPECT_THAT(status({real, bytes, 0, {0}, {0}}), StatusIs(kInvalid, "is not positive"));
  EXPECT_THAT(status({real, bytes, 0, {1}, {256}}), StatusIs(kInvalid, "zero point 256"));
  EXPECT_THAT(status({real, Plain({4, 6}, DataType::kU8), 0, {1}, {0}}),
              StatusIs(kInvalid, "does not match dst"));
  EXPECT_THAT(status({bytes, bytes, 0, {1}, {0}}), StatusIs(kUnimplemented, "from u8 to u8"));
}

TEST(QuantizeErrorsTest, ARangeFitsItsTensors) {
  const auto status = StatusOfCreating(CreateQuantize);
  QuantizeDesc desc{.src = Plain({4, 5, 6}),
                    .dst = Plain({4, 5, 9}, DataType::kU8),
                    .range = Plain({2}),
                    .padding_left = {1}};
  EXPECT_THAT(status(desc), IsOk());
  desc.padding_left = {4};
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "do not fit"));
  desc.padding_left = {1};
  desc.range = Plain({3});
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "do not fit"));
  desc.range = Plain({2});
  desc.scales = {1};
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "do not fit"));
}

}  // namespace
}  // namespace tilewire::testing
