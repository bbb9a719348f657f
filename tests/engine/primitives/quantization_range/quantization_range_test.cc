// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/quantization_range/quantization_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

class QuantizationRangeTest : public RowTest<QuantizationRangeDesc> {
 protected:
  QuantizationRangeTest() : RowTest(CreateQuantizationRange) {}

  std::vector<float> RangeOf(const MemoryDesc& src, const std::vector<float>& values) {
    const MemoryDesc dst = Plain({2});
    const auto primitive = Create({src, dst});
    if (!primitive) return {};
    const Bytes packed = Pack(src, values);
    return Unpack<float>(
        dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(dst, 7)));
  }

  void ExpectFormula(const MemoryDesc& src, const std::vector<float>& values) {
    SCOPED_TRACE(src.ToString());
    const std::vector<float> got = RangeOf(src, values);
    if (got.empty()) return;
    float low = 0, high = 0;
    for (float value : values) {
      if (std::isnan(value)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const float scale = high > low ? (high - low) / 255 : 1;
    EXPECT_EQ(got[0], scale);
    EXPECT_EQ(got[1], std::nearbyint(-low / scale));
  }
};

TEST_P(QuantizationRangeTest, EveryLayout) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      const int64_t count = layout.desc.ElementCount();
      ExpectFormula(layout.desc, RandomFloats(count, 1, -3, 5));
      ExpectFormula(layout.desc, RandomFloats(count, 2, 1, 5));
      ExpectFormula(layout.desc, RandomFloats(count, 3, -5, -1));
    }
  }
}

TEST_P(QuantizationRangeTest, TheExtremesMayBeAnywhereInManyPieces) {
  for (int64_t at : {0, 15, 16, 70000, 100000}) {
    std::vector<float> values = RandomFloats(100001, 4, -1, 1);
    values[at] = 9;
    values[100000 - at] = -7;
    if (at != 50000) ExpectFormula(Plain({100001}), values);
  }
}

TEST_P(QuantizationRangeTest, ZerosHaveTheScaleOneAndNanDoesNotCount) {
  ExpectFormula(Plain({3, 7}), std::vector<float>(21, 0.0f));
  std::vector<float> values = RandomFloats(70, 5, -2, 3);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = std::numeric_limits<float>::quiet_NaN();
  ExpectFormula(Plain({70}), values);
}

TILEWIRE_TEST_EVERY_ROW(QuantizationRange);

TEST(QuantizationRangeErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateQuantizationRange);
  EXPECT_THAT(status({Plain({4}), Plain({2})}), IsOk());
  EXPECT_THAT(status({Plain({4}), Plain({3})}), StatusIs(kInvalid, "expected [2]"));
  EXPECT_THAT(status({Plain({4}, DataType::kU8), Plain({2})}),
              StatusIs(kUnimplemented, "f32 only"));
}

}  // namespace
}  // namespace tilewire::testing
