// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/sum/sum.h"

#include <limits>

#include "tests/engine/primitives/row_test.h"
#include "tests/support/padded_tail.h"

namespace tilewire::testing {
namespace {

std::vector<std::vector<float>> RandomSources(const Dims& dims, size_t count) {
  std::vector<std::vector<float>> sources;
  for (size_t i = 0; i < count; ++i) {
    sources.push_back(RandomFloats(*ElementCount(dims), i + 1));
  }
  return sources;
}

std::vector<float> Expected(const std::vector<float>& scales,
                            const std::vector<std::vector<float>>& sources) {
  std::vector<float> total(sources[0].size());
  for (size_t e = 0; e < total.size(); ++e) {
    total[e] = scales[0] * sources[0][e];
    for (size_t i = 1; i < sources.size(); ++i) total[e] += scales[i] * sources[i][e];
  }
  return total;
}

class SumTest : public RowTest<SumDesc> {
 protected:
  SumTest() : RowTest(CreateSum) {}

  // The logical result; nothing where the row refuses.
  std::vector<float> Sum(const SumDesc& desc, const std::vector<std::vector<float>>& sources) {
    const auto primitive = Create(desc);
    if (!primitive) return {};
    const std::vector<Bytes> packed = PackAll(desc.srcs, sources);
    const MemoryDesc& dst = primitive->Desc(kArgDst);
    return Unpack<float>(
        dst, ExecuteAllWays(*primitive, MultipleSources(packed), kArgDst, Garbage(dst, 7)));
  }

  void ExpectSum(const SumDesc& desc) {
    SCOPED_TRACE(desc.dst.ToString());
    const auto sources = RandomSources(desc.dst.dims(), desc.srcs.size());
    if (!Create(desc)) return;
    EXPECT_EQ(BitsOf(Sum(desc, sources)), BitsOf(Expected(desc.scales, sources)));
  }
};

TEST_P(SumTest, OneLayout) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (const std::vector<float>& scales :
           {std::vector<float>{1, 1}, {0.5f, -2, 3}, {-1}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f}}) {
        ExpectSum({scales, std::vector<MemoryDesc>(scales.size(), layout.desc), layout.desc});
      }
    }
  }
}

TEST_P(SumTest, LayoutsThatDiffer) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes one layout only";
  for (const Dims& dims : {Dims{2, 17, 3, 4}, Dims{3, 33}}) {
    for (const Layout& first : LayoutsOf(dims)) {
      for (const Layout& second : LayoutsOf(dims)) {
        ExpectSum({{2, -1}, {first.desc, second.desc}, second.desc});
      }
    }
  }
}

TEST_P(SumTest, MoreThanOnePieceOfWork) {
  const MemoryDesc desc = Tagged({2, 40, 33, 31}, "nChw16c");
  ExpectSum({{1, 2}, {desc, desc}, desc});
}

TEST_P(SumTest, AnyIsTheLayoutOfTheFirstSource) {
  const MemoryDesc first = Tagged({2, 17, 3, 3}, "nChw8c");
  const SumDesc desc{{1, 1}, {first, first}, *MemoryDesc::CreateAny(first.dims(), DataType::kF32)};
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), first);
}

TEST_P(SumTest, DestinationMayBeTheFirstSource) {
  const MemoryDesc desc = Tagged({2, 17, 3, 3}, "nChw16c");
  const auto primitive = Create({{3, -1}, {desc, desc}, desc});
  ASSERT_TRUE(primitive);
  const auto sources = RandomSources(desc.dims(), 2);
  Bytes first = Pack(desc, sources[0]);
  const Bytes second = Pack(desc, sources[1]);
  ExecuteArgs args;
  args.Set(kArgMultipleSrc, first.data()).Set(kArgMultipleSrc + 1, second.data());
  args.Set(kArgDst, first.data());
  ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
  EXPECT_EQ(Unpack<float>(desc, first), Expected({3, -1}, sources));
  EXPECT_TRUE(PaddingIsZero(desc, first.data()));
}

// 0 times infinity is NaN, 0 times -1 is -0: neither may reach the padded tail.
TEST_P(SumTest, ScalesDoNotReachTheTail) {
  const MemoryDesc desc = Tagged({1, 3, 2, 2}, "nChw8c");
  for (float scale : {-1.0f, std::numeric_limits<float>::infinity()}) {
    ExpectSum({{scale, scale}, {desc, desc}, desc});
  }
}

TEST_P(SumTest, TensorWithoutElements) {
  const MemoryDesc desc = Tagged({0, 3, 2, 2}, "nChw8c");
  ExpectSum({{1, 1}, {desc, desc}, desc});
}

TEST_P(SumTest, OtherTypesAreAddedInF32) {
  const std::vector<float> scales = {0.5f, -2, 1};
  for (DataType type : kOtherTypes) {
    for (const Dims& dims : {Dims{2, 17, 3, 4}, Dims{1, 3, 5, 7}, Dims{1, 16, 41, 31}}) {
      for (const Layout& layout : LayoutsOf(dims, type)) {
        SCOPED_TRACE(absl::StrCat(layout.why, " ", layout.desc.ToString()));
        const auto primitive = Create({scales, {3, layout.desc}, layout.desc});
        if (!primitive) continue;
        std::vector<Bytes> packed;
        std::vector<std::vector<float>> sources;
        for (int i = 0; i < 3; ++i) {
          packed.push_back(RandomTensor(layout.desc, 11 * i));
          sources.push_back(ElementValues(layout.desc, packed.back()));
        }
        const Inputs inputs = {{kArgMultipleSrc, &packed[0]},
                               {kArgMultipleSrc + 1, &packed[1]},
                               {kArgMultipleSrc + 2, &packed[2]}};
        EXPECT_TRUE(ElementBits(layout.desc, ExecuteAllWays(*primitive, MultipleSources(packed),
                                                            kArgDst, Garbage(layout.desc, 7))) ==
                    BitsAs(type, Expected(scales, sources)));
      }
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Sum);

TEST(SumErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc good = Plain({1, 3, 4, 4});
  const MemoryDesc overlap =
      *MemoryDesc::CreateStrided({1, 3, 4, 4}, DataType::kF32, {48, 16, 3, 1});
  const MemoryDesc bytes = Plain({1, 3, 4, 4}, DataType::kU8);
  const MemoryDesc any = *MemoryDesc::CreateAny({1, 3, 4, 4}, DataType::kF32);
  EXPECT_THAT(CreateSum({{}, {}, good}, {}, {}), StatusIs(kInvalid, "no source"));
  EXPECT_THAT(CreateSum({{1}, {good, good}, good}, {}, {}),
              StatusIs(kInvalid, "1 scales for 2 sources"));
  EXPECT_THAT(CreateSum({{1, 1}, {good, any}, good}, {}, {}),
              StatusIs(kInvalid, "source 1 has no layout"));
  EXPECT_THAT(CreateSum({{1, 1}, {good, Plain({1, 3, 4, 5})}, good}, {}, {}),
              StatusIs(kInvalid, "source 1 is f32:1x3x4x5"));
  EXPECT_THAT(CreateSum({{1, 1}, {good, bytes}, good}, {}, {}), StatusIs(kInvalid, "source 1"));
  EXPECT_THAT(CreateSum({{1}, {good}, overlap}, {}, {}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(CreateSum({{1}, {overlap}, good}, {}, {}), IsOk());
  EXPECT_THAT(CreateSum({{1}, {overlap}, any}, {}, {}), IsOk());
  EXPECT_THAT(CreateSum({{1}, {good}, good}, {}, {.only = "sum/gpu"}),
              StatusIs(kInvalid, "no implementation 'sum/gpu'"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(CreateSum({{1}, {good}, good}, relu, {}), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
