// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/concat/concat.h"

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct ConcatCase {
  const char* why;
  Dims dims;  // off the axis
  std::vector<int64_t> sizes;
};

std::vector<ConcatCase> Cases() {
  return {
      {"a matrix", {3, 5}, {2, 1}},
      {"whole blocks of 16", {2, 17, 3, 4}, {16, 32}},
      {"whole blocks of 8 only", {2, 3, 3, 4}, {8, 24, 16}},
      {"the last source has a tail", {2, 15, 3, 4}, {32, 3}},
      {"a tail inside a block", {2, 33, 3, 4}, {15, 17}},
      {"all sources in one block", {1, 40, 2, 3}, {1, 3, 4}},
      {"a source of size 0 first", {2, 3, 3, 4}, {0, 16}},
      {"a source of size 0 in the middle", {2, 17, 3, 4}, {16, 0, 24}},
      {"a source of size 0 last", {2, 17, 3, 4}, {17, 0}},
      {"nothing but sources of size 0", {2, 16, 3, 4}, {0, 0}},
      {"no element off the axis", {2, 16, 0, 4}, {16, 8}},
      {"one source", {2, 24, 3, 4}, {16}},
      {"one dimension", {2, 17, 5}, {16, 1}},
      {"three dimensions", {2, 24, 2, 1, 3}, {8, 16, 1}},
      {"many sources", {1, 16, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
}

Dims WithSize(Dims dims, int axis, int64_t size) {
  dims[axis] = size;
  return dims;
}

template <typename T>
std::vector<std::vector<T>> NumberedSources(const ConcatDesc& desc) {
  std::vector<std::vector<T>> sources;
  int64_t next = 1;
  for (const MemoryDesc& src : desc.srcs) {
    std::vector<T> values(src.ElementCount());
    for (T& value : values) value = static_cast<T>(next++);
    sources.push_back(values);
  }
  return sources;
}

// dst in row-major order: element by element from the source that covers it.
template <typename T>
std::vector<T> Expected(const ConcatDesc& desc, const std::vector<std::vector<T>>& sources) {
  std::vector<T> values;
  ForEachIndex(desc.dst.dims(), [&](Dims index) {
    size_t s = 0;
    while (index[desc.axis] >= desc.srcs[s].dim(desc.axis)) {
      index[desc.axis] -= desc.srcs[s++].dim(desc.axis);
    }
    values.push_back(sources[s][Plain(desc.srcs[s].dims()).Offset(index)]);
  });
  return values;
}

class ConcatTest : public RowTest<ConcatDesc> {
 protected:
  ConcatTest() : RowTest(CreateConcat) {}

  template <typename T = float>
  void ExpectConcat(const ConcatDesc& desc) {
    const auto primitive = Create(desc);
    if (!primitive) return;
    const auto sources = NumberedSources<T>(desc);
    const std::vector<Bytes> packed = PackAll(desc.srcs, sources);
    const MemoryDesc& dst = primitive->Desc(kArgDst);
    EXPECT_TRUE(Unpack<T>(dst, ExecuteAllWays(*primitive, MultipleSources(packed), kArgDst,
                                              Garbage(dst, 7))) == Expected(desc, sources))
        << desc.srcs[0].ToString() << " ... -> " << dst.ToString();
  }
};

// Source i in layout number `from` of its shape, dst in layout number `to`.
ConcatDesc DescOf(const ConcatCase& one, int axis, size_t from, size_t to,
                  DataType type = DataType::kF32) {
  ConcatDesc desc;
  desc.axis = axis;
  int64_t total = 0;
  for (int64_t size : one.sizes) {
    desc.srcs.push_back(LayoutsOf(WithSize(one.dims, axis, size), type)[from].desc);
    total += size;
  }
  desc.dst = LayoutsOf(WithSize(one.dims, axis, total), type)[to].desc;
  return desc;
}

TEST_P(ConcatTest, EveryAxisOfEveryLayout) {
  for (const ConcatCase& one : Cases()) {
    SCOPED_TRACE(one.why);
    const size_t layouts = LayoutsOf(one.dims).size();
    for (int axis = 0; axis < static_cast<int>(one.dims.size()); ++axis) {
      for (size_t layout = 0; layout < layouts; ++layout) {
        ExpectConcat(DescOf(one, axis, layout, layout));
      }
    }
  }
}

TEST_P(ConcatTest, LayoutsThatDiffer) {
  const ConcatCase one{"", {2, 17, 3, 4}, {16, 17}};
  const size_t layouts = LayoutsOf(one.dims).size();
  for (size_t from = 0; from < layouts; ++from) {
    for (size_t to = 0; to < layouts; ++to) ExpectConcat(DescOf(one, 1, from, to));
  }
}

TEST_P(ConcatTest, MoreThanOnePieceOfWork) {
  const ConcatCase one{"", {2, 48, 23, 17}, {48, 24}};
  for (size_t layout = 0; layout < LayoutsOf(one.dims).size(); ++layout) {
    ExpectConcat(DescOf(one, 1, layout, layout));
  }
}

TEST_P(ConcatTest, ElementsOfOneAndTwoBytes) {
  const ConcatCase one{"", {2, 3, 3, 4}, {16, 3}};
  for (size_t layout = 0; layout < LayoutsOf(one.dims).size(); ++layout) {
    ExpectConcat<uint8_t>(DescOf(one, 1, layout, layout, DataType::kU8));
    ExpectConcat<uint16_t>(DescOf(one, 1, layout, layout, DataType::kBf16));
    ExpectConcat<int32_t>(DescOf(one, 1, layout, layout, DataType::kS32));
  }
}

// Sizes that end inside a block run by generated code wherever there is any.
TEST(ConcatDispatchTest, PartsOfBlocksStayOffTheReference) {
  for (const auto& [isa, tag] :
       {std::pair{cpu::Isa::kAvx2, "nChw8c"}, {cpu::Isa::kAvx512, "nChw16c"}}) {
    if (!cpu::Supports(isa)) continue;
    const ConcatDesc desc{
        1, {Tagged({1, 17, 8, 8}, tag), Tagged({1, 24, 8, 8}, tag)}, Tagged({1, 41, 8, 8}, tag)};
    const auto primitive = CreateConcat(desc, {}, {.max_isa = isa});
    ASSERT_THAT(primitive, IsOk());
    EXPECT_FALSE((*primitive)->info().traits.is_reference);
  }
}

TEST_P(ConcatTest, SourcesThatRepeatAnElement) {
  const MemoryDesc repeated = *MemoryDesc::CreateStrided({2, 3}, DataType::kF32, {0, 0});
  const ConcatDesc desc{1, {repeated, repeated}, Plain({2, 6})};
  const auto primitive = Create(desc);
  if (!primitive) GTEST_SKIP() << "takes blocks of channels only";
  const Bytes first = Pack<float>(Plain({1}), {3}), second = Pack<float>(Plain({1}), {4});
  EXPECT_EQ(Unpack<float>(desc.dst, ExecuteAllWays(
                                        *primitive,
                                        {{kArgMultipleSrc, &first}, {kArgMultipleSrc + 1, &second}},
                                        kArgDst, Garbage(desc.dst, 7))),
            (std::vector<float>{3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}));
}

TEST_P(ConcatTest, AnyIsTheLayoutOfTheFirstSource) {
  for (const char* tag : {"nChw16c", "nChw8c"}) {
    const ConcatDesc desc{1,
                          {Tagged({2, 32, 3, 3}, tag), Tagged({2, 5, 3, 3}, tag)},
                          *MemoryDesc::CreateAny({2, 37, 3, 3}, DataType::kF32)};
    const auto primitive = Create(desc);
    EXPECT_TRUE(!primitive || primitive->Desc(kArgDst) == Tagged({2, 37, 3, 3}, tag));
  }
}

TILEWIRE_TEST_EVERY_ROW(Concat);

TEST(ConcatErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({1, 3, 4, 4}), dst = Plain({1, 6, 4, 4});
  const MemoryDesc overlap =
      *MemoryDesc::CreateStrided({1, 6, 4, 4}, DataType::kF32, {48, 16, 3, 1});
  EXPECT_THAT(CreateConcat({1, {}, dst}, {}, {}), StatusIs(kInvalid, "no source"));
  EXPECT_THAT(CreateConcat({4, {src, src}, dst}, {}, {}), StatusIs(kInvalid, "axis 4"));
  EXPECT_THAT(CreateConcat({-1, {src, src}, dst}, {}, {}), StatusIs(kInvalid, "axis -1"));
  EXPECT_THAT(CreateConcat({1, {src, MemoryDesc()}, dst}, {}, {}),
              StatusIs(kInvalid, "source 1 has no layout"));
  EXPECT_THAT(CreateConcat({1, {src}, dst}, {}, {}), StatusIs(kInvalid, "the sources have 3"));
  EXPECT_THAT(CreateConcat({1, {src, Plain({1, 3, 4, 5})}, dst}, {}, {}),
              StatusIs(kInvalid, "source 1 is f32:1x3x4x5"));
  EXPECT_THAT(CreateConcat({1, {src, Plain({1, 3, 16})}, dst}, {}, {}),
              StatusIs(kInvalid, "source 1"));
  EXPECT_THAT(CreateConcat({1, {src, Plain({1, 3, 4, 4}, DataType::kU8)}, dst}, {}, {}),
              StatusIs(kInvalid, "source 1 is u8"));
  EXPECT_THAT(CreateConcat({1, {src, src}, overlap}, {}, {}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(CreateConcat({1, {src, src}, dst}, {}, {.only = "concat/gpu"}),
              StatusIs(kInvalid, "no implementation 'concat/gpu'"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(CreateConcat({1, {src, src}, dst}, relu, {}), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
