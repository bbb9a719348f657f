// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/max_window/max_window.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct WindowCase {
  const char* why;
  Dims src, dst, kernel, strides, dilations, padding_left;
};

std::vector<WindowCase> WindowCases() {
  return {
      {"halves an image", {2, 3, 8, 6}, {2, 3, 4, 3}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
      {"overlapping, with a border", {1, 2, 7, 9}, {1, 2, 7, 9}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
      {"dilated", {1, 2, 9, 9}, {1, 2, 5, 5}, {3, 2}, {1, 1}, {1, 3}, {0, 0}},
      {"windows outside on every side", {1, 1, 3, 3}, {1, 1, 5, 5}, {2, 2}, {3, 3}, {0, 0}, {4, 4}},
      {"one spatial dimension", {2, 3, 17}, {2, 3, 6}, {4}, {3}, {0}, {1}},
      {"three", {1, 2, 3, 4, 5}, {1, 2, 2, 3, 3}, {2, 2, 3}, {1, 1, 2}, {0, 0, 0}, {0, 0, 1}},
      {"the whole image", {2, 3, 5, 7}, {2, 3, 1, 1}, {5, 7}, {1, 1}, {0, 0}, {0, 0}},
      {"more than one piece of work",
       {1, 2, 40, 41},
       {1, 2, 40, 41},
       {3, 3},
       {1, 1},
       {0, 0},
       {1, 1}},
      {"no image", {0, 3, 4, 4}, {0, 3, 2, 2}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
  };
}

// Few different numbers, so that windows have equal ones; some are NaN.
std::vector<float> WindowValues(int64_t count) {
  std::vector<float> values(count);
  Random random(3);
  for (float& value : values) {
    const uint64_t bits = random.Next() % 11;
    value = bits == 10 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(bits) - 5;
  }
  return values;
}

class MaxWindowTest : public RowTest<MaxWindowDesc> {
 protected:
  MaxWindowTest() : RowTest(CreateMaxWindow) {}

  void ExpectMaxima(const WindowCase& one, MaxWindowResult result, const MemoryDesc& src,
                    const MemoryDesc& dst) {
    SCOPED_TRACE(absl::StrCat(one.why, ": ", src.ToString(), " result ", static_cast<int>(result)));
    const auto primitive =
        Create({result, src, dst, one.kernel, one.strides, one.dilations, one.padding_left});
    if (!primitive) return;
    const std::vector<float> values = WindowValues(src.ElementCount());
    const Bytes packed = Pack(src, values);
    const std::vector<float> got = Unpack<float>(
        dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(dst, 7)));
    size_t i = 0;
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      const float expected = MaximumAt(one, result, values, index);
      ASSERT_TRUE(got[i] == expected || (std::isnan(got[i]) && std::isnan(expected)))
          << "element " << i << ": " << got[i] << ", not " << expected;
      ++i;
    });
  }

 private:
  // All elements of src in row-major order, those in the window among them: the first best one.
  static float MaximumAt(const WindowCase& one, MaxWindowResult result,
                         const std::vector<float>& values, const Dims& index) {
    const MemoryDesc plain = Plain(one.src);
    Dims best;
    float maximum = -std::numeric_limits<float>::infinity();
    ForEachIndex(one.src, [&](const Dims& at) {
      if (at[0] != index[0] || at[1] != index[1] || !IsInWindow(one, index, at)) return;
      const float x = values[plain.Offset(at)];
      if (!best.empty() && (std::isnan(x) || x <= maximum)) return;
      best = at;
      maximum = x;
    });
    if (result == MaxWindowResult::kElement) return maximum;
    if (best.empty()) return -1;
    if (result == MaxWindowResult::kIndex) return static_cast<float>(plain.Offset(best));
    const size_t rank = best.size();
    Dims order = one.src, place = best;
    for (size_t d = 2; d < rank; ++d) {
      order[d] = one.src[rank + 1 - d];
      place[d] = best[rank + 1 - d];
    }
    return static_cast<float>(Plain(order).Offset(place));
  }

  static bool IsInWindow(const WindowCase& one, const Dims& index, const Dims& at) {
    for (size_t i = 0; i < one.kernel.size(); ++i) {
      const int64_t step = one.dilations[i] + 1;
      const int64_t from_start = at[i + 2] - (index[i + 2] * one.strides[i] - one.padding_left[i]);
      if (from_start < 0 || from_start % step != 0 || from_start / step >= one.kernel[i])
        return false;
    }
    return true;
  }
};

constexpr MaxWindowResult kResults[] = {MaxWindowResult::kElement, MaxWindowResult::kIndex,
                                        MaxWindowResult::kColumnMajorIndex};

TEST_P(MaxWindowTest, EveryCaseAndResult) {
  for (const WindowCase& one : WindowCases()) {
    for (MaxWindowResult result : kResults)
      ExpectMaxima(one, result, Plain(one.src), Plain(one.dst));
  }
}

TEST_P(MaxWindowTest, OtherLayouts) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes row-major tensors only";
  const WindowCase one = WindowCases()[1];
  for (const Layout& src : LayoutsOf(one.src)) {
    for (const Layout& dst : LayoutsOf(one.dst))
      ExpectMaxima(one, MaxWindowResult::kIndex, src.desc, dst.desc);
  }
}

TILEWIRE_TEST_EVERY_ROW(MaxWindow);

TEST(MaxWindowErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({1, 2, 4, 4}), dst = Plain({1, 2, 2, 2});
  constexpr auto kIndex = MaxWindowResult::kIndex;
  const auto status = StatusOfCreating(CreateMaxWindow);
  const Dims two = {2, 2}, none = {0, 0};
  EXPECT_THAT(status({kIndex, src, dst, two, two, none, none}), IsOk());
  EXPECT_THAT(status({kIndex, src, Plain({1, 3, 2, 2}), two, two, none, none}),
              StatusIs(kInvalid, "dst f32:1x3x2x2"));
  EXPECT_THAT(status({kIndex, Plain({4, 4}), Plain({4, 4}), {}, {}, {}, {}}),
              StatusIs(kInvalid, "src is f32:4x4"));
  EXPECT_THAT(status({kIndex, src, dst, {2}, two, none, none}), StatusIs(kInvalid, "[2] for 2"));
  EXPECT_THAT(status({kIndex, src, dst, {0, 2}, two, none, none}), StatusIs(kInvalid, "kernel 0"));
  EXPECT_THAT(status({kIndex, src, dst, two, {2, 0}, none, none}), StatusIs(kInvalid, "stride 0"));
  EXPECT_THAT(status({kIndex, src, dst, two, two, {-1, 0}, none}),
              StatusIs(kInvalid, "dilation -1"));
  EXPECT_THAT(status({kIndex, src, dst, two, two, none, {0, -1}}),
              StatusIs(kInvalid, "padding -1"));
  EXPECT_THAT(status({kIndex, src, dst, two, {int64_t{1} << 62, 2}, none, none}),
              StatusIs(kInvalid, "stride 4611686018427387904"));
}

}  // namespace
}  // namespace tilewire::testing
