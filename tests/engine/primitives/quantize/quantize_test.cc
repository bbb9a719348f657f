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

  void ExpectConversion(const MemoryDesc& src, const MemoryDesc& dst, int axis,
                        const Params& params) {
    SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString(), " axis ", axis));
    const auto primitive = Create({src, dst, axis, params.scales, params.zero_points});
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
              ? (x - static_cast<float>(zero_point)) * scale
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
  for (const Dims& dims : ImageDims()) {
    for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout) {
      for (DataType type : {DataType::kU8, DataType::kS8})
        ExpectBothWays(dims, layout, layout, type);
    }
  }
}

TEST_P(QuantizeTest, LayoutsThatDiffer) {
  const Dims dims = {2, 17, 3, 4};
  const size_t layouts = LayoutsOf(dims).size();
  for (size_t from = 0; from < layouts; ++from) {
    for (size_t to = 0; to < layouts; ++to) ExpectBothWays(dims, from, to, DataType::kU8);
  }
}

TEST_P(QuantizeTest, EveryAxis) {
  const Dims dims = {3, 5, 7};
  for (int axis = 0; axis < 3; ++axis) {
    Params params{{}, std::vector<int32_t>(dims[axis], 5)};
    for (int64_t i = 0; i < dims[axis]; ++i) params.scales.push_back(0.5f + 0.25f * i);
    ExpectConversion(Plain(dims), Plain(dims, DataType::kS8), axis, params);
    ExpectConversion(Plain(dims, DataType::kU8), Plain(dims), axis, params);
  }
}

TEST_P(QuantizeTest, MoreThanOnePieceOfWork) {
  const Dims dims = {2, 40, 33, 31};
  ExpectConversion(Plain(dims), Plain(dims, DataType::kU8), 1, {{0.7f}, {100}});
  ExpectConversion(Plain(dims, DataType::kS8), Plain(dims), 1, {{0.7f}, {100}});
}

TEST_P(QuantizeTest, IntegersHeldInF32AndTensorsWithoutElements) {
  ExpectConversion(Plain({3, 40}), Plain({3, 40}), 0, {{0.5f}, {7}});
  ExpectConversion(Plain({0, 4}), Plain({0, 4}, DataType::kU8), 0, {{0.5f}, {7}});
}

TEST_P(QuantizeTest, AnyIsTheLayoutOfTheSource) {
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw8c");
  const auto primitive =
      Create({src, *MemoryDesc::CreateAny(src.dims(), DataType::kU8), 1, {1}, {0}});
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Tagged(src.dims(), "nChw8c", DataType::kU8));
}

TILEWIRE_TEST_EVERY_ROW(Quantize);

TEST(QuantizeErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc real = Plain({4, 5}), bytes = Plain({4, 5}, DataType::kU8);
  const auto status = StatusOfCreating(CreateQuantize);
  EXPECT_THAT(status({real, bytes, 9, {1}, {0}}), IsOk());
  EXPECT_THAT(status({real, bytes, 2, {1, 1}, {0, 0}}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({real, bytes, 0, {1, 1}, {0, 0}}), StatusIs(kInvalid, "2 scales"));
  EXPECT_THAT(status({real, bytes, 0, {1}, {}}), StatusIs(kInvalid, "0 zero points"));
  EXPECT_THAT(status({real, bytes, 0, {0}, {0}}), StatusIs(kInvalid, "is not positive"));
  EXPECT_THAT(status({real, bytes, 0, {1}, {256}}), StatusIs(kInvalid, "zero point 256"));
  EXPECT_THAT(status({real, Plain({4, 6}, DataType::kU8), 0, {1}, {0}}),
              StatusIs(kInvalid, "does not match dst"));
  EXPECT_THAT(status({bytes, bytes, 0, {1}, {0}}), StatusIs(kUnimplemented, "from u8 to u8"));
}

}  // namespace
}  // namespace tilewire::testing
