// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/softmax/softmax.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Visits the rows along `axis`: the offsets in row-major order of their elements.
template <typename Visit>
void ForEachRow(const Dims& dims, int axis, Visit visit) {
  const MemoryDesc plain = Plain(dims);
  Dims outer = dims;
  outer[axis] = dims[axis] == 0 ? 0 : 1;
  ForEachIndex(outer, [&](Dims index) {
    std::vector<int64_t> row;
    for (; index[axis] < dims[axis]; ++index[axis]) row.push_back(plain.Offset(index));
    visit(row);
  });
}

// Against double precision. A power's argument is rounded once, the sum n times, powers and
// quotient a few times: (n + |x - max| + 8) 2^-24 relative, and denormals may be flushed.
void ExpectSoftmax(const Dims& dims, int axis, const std::vector<float>& src,
                   const std::vector<float>& dst) {
  ASSERT_EQ(src.size(), dst.size());
  ForEachRow(dims, axis, [&](const std::vector<int64_t>& row) {
    double highest = -kInfinity, total = 0;
    for (int64_t i : row) highest = std::max<double>(highest, src[i]);
    for (int64_t i : row) total += std::exp(src[i] - highest);
    for (int64_t i : row) {
      const double below = src[i] - highest, expected = std::exp(below) / total;
      const double roundings = row.size() + 8 + (std::isinf(below) ? 0 : std::abs(below));
      ASSERT_NEAR(dst[i], expected, roundings * 0x1p-24 * expected + 0x1p-125);
    }
  });
}

class SoftmaxTest : public RowTest<SoftmaxDesc> {
 protected:
  SoftmaxTest() : RowTest(CreateSoftmax) {}

  // The logical result; nothing where the row refuses.
  std::optional<std::vector<float>> Softmax(const MemoryDesc& from, const MemoryDesc& to, int axis,
                                            const std::vector<float>& values) {
    const auto primitive = Create({PropKind::kForwardInference, from, to, axis});
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(primitive->Desc(kArgSrc), values);
    const MemoryDesc& dst = primitive->Desc(kArgDst);
    return Unpack<float>(dst,
                         ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(dst, 7)));
  }

  void ExpectMatches(const MemoryDesc& from, const MemoryDesc& to, int axis,
                     const std::vector<float>& values) {
    SCOPED_TRACE(absl::StrCat(from.ToString(), " -> ", to.ToString(), " axis ", axis));
    const auto result = Softmax(from, to, axis, values);
    if (result) ExpectSoftmax(from.dims(), axis, values, *result);
  }
};

TEST_P(SoftmaxTest, EveryAxisOfEveryLayout) {
  std::vector<Dims> all = ImageDims();
  for (const Dims& dims : {Dims{1, 1}, Dims{3, 10}, Dims{2, 1000}, Dims{7, 1}}) all.push_back(dims);
  for (const Dims& dims : all) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 1, -10, 10);
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
      for (const Layout& layout : LayoutsOf(dims)) {
        SCOPED_TRACE(layout.why);
        ExpectMatches(layout.desc, layout.desc, axis, values);
        ExpectMatches(Plain(dims), layout.desc, axis, values);
      }
    }
  }
  ExpectMatches(Plain({40}), Plain({40}), 0, RandomFloats(40, 1));
}

// Rows beside each other: fewer than a vector, copies of them with and without a rest, several
// groups with a smaller last one, and channels that end inside a block.
TEST_P(SoftmaxTest, RowsSideBySide) {
  for (const Dims& dims : {Dims{2, 37, 1, 3}, Dims{3, 70, 7, 7}, Dims{1, 64, 4, 4},
                           Dims{2, 5, 9, 11}, Dims{1, 21, 33, 33}, Dims{2, 48, 13, 13},
                           Dims{1, 2, 1, 1300}, Dims{1, 1, 5, 5}, Dims{1, 259, 20, 21}}) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 3, -20, 20);
    for (const char* layout : {"abcd", "aBcd16b", "aBcd8b"}) {
      const MemoryDesc md = *MemoryDesc::CreatePattern(dims, DataType::kF32, layout);
      ExpectMatches(md, md, 1, values);
    }
  }
}

// All values of a row are far below zero, so that a lane of padding would be its highest.
TEST_P(SoftmaxTest, PaddingIsNoneOfTheChannels) {
  for (const int64_t channels : {1, 7, 9, 17, 31}) {
    const Dims dims = {2, channels, 3, 3};
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 5, -300, -200);
    for (const char* layout : {"acdb", "aBcd16b", "aBcd8b"}) {
      const MemoryDesc md = *MemoryDesc::CreatePattern(dims, DataType::kF32, layout);
      ExpectMatches(md, md, 1, values);
    }
  }
}

// A row without a meaning among others in a vector, in copies of rows and in blocks.
TEST_P(SoftmaxTest, NanOfARowStaysThereInEveryLayout) {
  const Dims dims = {1, 35, 3, 7};
  constexpr int64_t kRows = 21, kSick = 4;
  std::vector<float> values = RandomFloats(*ElementCount(dims), 5, -5, 5);
  values[kRows * 34 + kSick] = std::numeric_limits<float>::quiet_NaN();
  for (const char* layout : {"abcd", "acdb", "aBcd16b", "aBcd8b"}) {
    SCOPED_TRACE(layout);
    const MemoryDesc md = *MemoryDesc::CreatePattern(dims, DataType::kF32, layout);
    const auto result = Softmax(md, md, 1, values);
    for (int64_t i = 0; result && i < kRows * 35; ++i)
      ASSERT_EQ(std::isnan((*result)[i]), i % kRows == kSick) << i;
  }
}

TEST_P(SoftmaxTest, LargeValuesDoNotOverflow) {
  const MemoryDesc md = Plain({6, 4});
  ExpectMatches(md, md, 1,
                {1e4f,  1e4f,  9999,  0,     3e38f, -3e38f, 3e38f, 0,     88, 89, 90, 1000,
                 -1e4f, -1e4f, -1e4f, -1e4f, 0,     -87,    -103,  -1e5f, 0,  0,  0,  -50});
}

TEST_P(SoftmaxTest, MinusInfinityIsZero) {
  const MemoryDesc md = Plain({2, 3});
  const auto result = Softmax(md, md, 1, {0, -kInfinity, 0, -kInfinity, -kInfinity, 5});
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, (std::vector<float>{0.5f, 0, 0.5f, 0, 0, 1}));
}

// 0 / 0, as in every framework; a neighbour of such a row is not touched.
TEST_P(SoftmaxTest, RowsWithoutAMeaningAreNanAlone) {
  const MemoryDesc md = Plain({4, 2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto result =
      Softmax(md, md, 1, {-kInfinity, -kInfinity, nan, 1, kInfinity, kInfinity, 3, 3});
  ASSERT_TRUE(result);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan((*result)[i])) << i;
  EXPECT_EQ((*result)[6], 0.5f);
  EXPECT_EQ((*result)[7], 0.5f);
}

TEST_P(SoftmaxTest, OneElementIsOne) {
  const MemoryDesc md = Plain({3, 1});
  const auto result = Softmax(md, md, 1, {-7, 0, 3e38f});
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, (std::vector<float>{1, 1, 1}));
}

TEST_P(SoftmaxTest, ManyRowsOfAFewElements) {
  for (int64_t classes = 1; classes <= 9; ++classes) {
    const MemoryDesc md = Plain({4099, classes});
    ExpectMatches(md, md, 1, RandomFloats(md.ElementCount(), classes, -20, 20));
  }
}

TEST_P(SoftmaxTest, RowsDoNotDependOnTheBatch) {
  for (int64_t classes : {1, 2, 3, 4, 7, 8, 10, 1000}) {
    if (classes == 1 && GetParam().traits.runs_another) continue;  // any layout has such rows
    const std::vector<float> values = RandomFloats(9 * classes, 1, -5, 5);
    const auto all = Softmax(Plain({9, classes}), Plain({9, classes}), 1, values);
    ASSERT_TRUE(all);
    for (int n = 0; n < 9; ++n) {
      const auto begin = n * classes, end = begin + classes;
      const auto one = Softmax(Plain({1, classes}), Plain({1, classes}), 1,
                               {values.begin() + begin, values.begin() + end});
      EXPECT_EQ(BitsOf(*one), BitsOf({all->begin() + begin, all->begin() + end}));
    }
  }
}

TEST_P(SoftmaxTest, MayRunInPlace) {
  const MemoryDesc md = Plain({5, 100});
  const std::vector<float> values = RandomFloats(500, 1, -5, 5);
  const auto primitive = Create({PropKind::kForwardInference, md, md, 1});
  ASSERT_TRUE(primitive);
  const MemoryDesc& dst = primitive->Desc(kArgDst);
  Bytes bytes = Pack(dst, values);
  ExecuteArgs args;
  args.Set(kArgSrc, bytes.data()).Set(kArgDst, bytes.data());
  ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
  EXPECT_EQ(BitsOf(Unpack<float>(dst, bytes)), BitsOf(*Softmax(md, md, 1, values)));
}

TEST_P(SoftmaxTest, AnyAndTensorsWithoutElements) {
  if (GetParam().traits.runs_another) GTEST_SKIP() << "is for layouts that are named";
  const MemoryDesc src = Plain({2, 10});
  SoftmaxDesc desc{PropKind::kForwardInference, src, src, 1};
  desc.dst = *MemoryDesc::CreateAny({2, 10}, DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), src);
  ExpectMatches(Plain({0, 10}), Plain({0, 10}), 1, {});
  ExpectMatches(Plain({3, 0}), Plain({3, 0}), 1, {});
}

TILEWIRE_TEST_EVERY_ROW(Softmax);

TEST(SoftmaxColumnsTest, TakesTheLayoutsOfPictures) {
  for (const auto& [isa, lanes] : {std::pair(cpu::Isa::kAvx512, 16), {cpu::Isa::kAvx2, 8}}) {
    if (!cpu::Supports(isa)) continue;
    const std::string only =
        absl::StrCat("softmax/", lanes == 16 ? "avx512" : "avx2", "_f32_columns");
    const auto status = [&](const std::string& layout, int axis) {
      const MemoryDesc md = *MemoryDesc::CreatePattern({2, 37, 5, 5}, DataType::kF32, layout);
      return CreateSoftmax({PropKind::kForwardInference, md, md, axis}, {}, {.only = only})
          .status();
    };
    const std::string blocks = absl::StrCat("aBcd", lanes, "b");
    EXPECT_THAT(status("abcd", 1), IsOk());
    EXPECT_THAT(status(blocks, 1), IsOk());
    EXPECT_THAT(status(blocks, 2), StatusIs(kUnimplemented, "channels along the axis"));
    EXPECT_THAT(status(absl::StrCat("aBcd", 24 - lanes, "b"), 1),
                StatusIs(kUnimplemented, ::testing::HasSubstr(absl::StrCat("blocks of ", lanes))));
  }
}

TEST(SoftmaxErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kForward = PropKind::kForwardInference;
  const MemoryDesc good = Plain({2, 10});
  const MemoryDesc overlap = *MemoryDesc::CreateStrided({2, 10}, DataType::kF32, {1, 1});
  const auto status = StatusOfCreating(CreateSoftmax);
  EXPECT_THAT(status({kForward, good, good, 2}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({kForward, good, good, -1}), StatusIs(kInvalid, "axis -1"));
  EXPECT_THAT(status({kForward, good, Plain({2, 11}), 1}), StatusIs(kInvalid, "dst f32:2x11"));
  EXPECT_THAT(status({kForward, MemoryDesc(), good, 1}), StatusIs(kInvalid, "no layout"));
  EXPECT_THAT(status({kForward, good, overlap, 1}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(status({kForward, overlap, good, 1}), IsOk());
  const MemoryDesc bytes = Plain({2, 10}, DataType::kU8);
  EXPECT_THAT(status({kForward, bytes, bytes, 1}),
              StatusIs(kUnimplemented, "takes f32 only, not u8"));
  EXPECT_THAT(status({PropKind::kBackwardData, good, good, 1}), StatusIs(kInvalid, "backward"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(status({kForward, good, good, 1}, relu), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
