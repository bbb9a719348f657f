// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/interpolate/interpolate.h"

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

class InterpolateTest : public RowTest<InterpolateDesc> {
 protected:
  InterpolateTest() : RowTest(CreateInterpolate) {}

  // `size` elements along the axis, of `taps` random ones each.
  void ExpectInterpolation(const MemoryDesc& src, const MemoryDesc& dst, int axis, int64_t taps) {
    SCOPED_TRACE(absl::StrCat(src.ToString(), " -> ", dst.ToString(), " axis ", axis));
    InterpolateDesc desc{.src = src, .dst = dst, .axis = axis, .taps = taps};
    const int64_t count = taps * dst.dim(axis);
    desc.weights = RandomFloats(count, 5);
    Random random(7);
    for (int64_t i = 0; i < count; ++i)
      desc.indices.push_back(static_cast<int64_t>(random.Next() % src.dim(axis)));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> values = RandomFloats(src.ElementCount(), 1);
    const Bytes packed = Pack(src, values);
    const MemoryDesc plain = Plain(src.dims());
    std::vector<float> expected;
    ForEachIndex(dst.dims(), [&](Dims index) {
      const int64_t first = index[axis] * taps;
      float sum = 0;
      for (int64_t t = 0; t < taps; ++t) {
        index[axis] = desc.indices[first + t];
        sum += desc.weights[first + t] * values[plain.Offset(index)];
      }
      expected.push_back(sum);
    });
    EXPECT_EQ(BitsOf(Unpack<float>(
                  dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(dst, 7)))),
              BitsOf(expected));
  }
};

Dims WithDimension(Dims dims, int d, int64_t size) {
  dims[d] = size;
  return dims;
}

TEST_P(InterpolateTest, EveryAxisOfEveryLayout) {
  for (const Dims& dims : {Dims{2, 17, 5}, Dims{2, 24, 3, 4}, Dims{1, 3, 2, 1, 3}, Dims{3, 40}}) {
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
      for (int64_t size : {int64_t{1}, 2 * dims[axis] + 1}) {
        const Dims result = WithDimension(dims, axis, size);
        for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout) {
          ExpectInterpolation(LayoutsOf(dims)[layout].desc, LayoutsOf(result)[layout].desc, axis,
                              2);
        }
      }
    }
  }
}

TEST_P(InterpolateTest, OneTapAndMany) {
  for (int64_t taps : {1, 4, 7}) {
    ExpectInterpolation(Plain({2, 3, 9, 13}), Plain({2, 3, 5, 13}), 2, taps);
    ExpectInterpolation(Plain({2, 3, 9, 13}), Plain({2, 3, 9, 30}), 3, taps);
    ExpectInterpolation(Tagged({2, 3, 9, 13}, "nChw8c"), Tagged({2, 3, 9, 30}, "nChw8c"), 3, taps);
  }
}

TEST_P(InterpolateTest, MoreThanOnePieceOfWork) {
  ExpectInterpolation(Plain({2, 9, 33, 40}), Plain({2, 9, 66, 40}), 2, 2);
  ExpectInterpolation(Plain({2, 9, 33, 40}), Plain({2, 9, 33, 90}), 3, 2);
}

TEST_P(InterpolateTest, LayoutsThatDiffer) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes layouts that are alike";
  for (const Layout& src : LayoutsOf({2, 17, 3, 4})) {
    for (const Layout& dst : LayoutsOf({2, 17, 6, 4}))
      ExpectInterpolation(src.desc, dst.desc, 2, 2);
  }
}

TILEWIRE_TEST_EVERY_ROW(Interpolate);

TEST(InterpolateErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({4, 5}), dst = Plain({4, 2});
  const auto status = StatusOfCreating(CreateInterpolate);
  EXPECT_THAT(status({src, dst, 1, 1, {0, 4}, {1, 1}}), IsOk());
  EXPECT_THAT(status({src, dst, 2, 1, {0, 4}, {1, 1}}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({src, dst, 0, 1, {0, 4}, {1, 1}}), StatusIs(kInvalid, "along axis 0"));
  EXPECT_THAT(status({src, dst, 1, 1, {0}, {1, 1}}), StatusIs(kInvalid, "1 indices"));
  EXPECT_THAT(status({src, dst, 1, 1, {0, 4}, {1}}), StatusIs(kInvalid, "1 weights"));
  EXPECT_THAT(status({src, dst, 1, 0, {}, {}}), StatusIs(kInvalid, "0 taps"));
  EXPECT_THAT(status({src, dst, 1, 1, {0, 5}, {1, 1}}), StatusIs(kInvalid, "index 5"));
  EXPECT_THAT(status({src, dst, 1, 1, {0, -1}, {1, 1}}), StatusIs(kInvalid, "index -1"));
  const MemoryDesc bytes = Plain({4, 5}, DataType::kU8);
  EXPECT_THAT(status({bytes, bytes, 1, 1, {0, 1, 2, 3, 4}, {1, 1, 1, 1, 1}}),
              StatusIs(kUnimplemented, "f32 only"));
}

}  // namespace
}  // namespace tilewire::testing
