// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/select/select.h"

#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Runs = std::vector<IndexRun>;

struct SelectCase {
  const char* why;
  Dims src;
  std::vector<Runs> from;
  float fill = 0;
};

std::vector<SelectCase> SelectCases() {
  return {
      {"all of it", {2, 17, 3, 4}, {{}, {}, {}, {}}},
      {"a slice of channels", {2, 33, 3, 4}, {{}, {{5, 1, 20}}, {}, {}}},
      {"every second pixel", {1, 8, 7, 9}, {{}, {}, {{0, 2, 4}}, {{1, 2, 4}}}},
      {"backwards", {2, 20, 3, 5}, {{}, {{19, -1, 20}}, {}, {{4, -1, 5}}}},
      {"a border of ones",
       {2, 17, 3, 4},
       {{}, {}, {{-1, 1, 1}, {0, 1, 3}, {-1, 1, 2}}, {{-1, 1, 2}, {0, 1, 4}, {-1, 1, 1}}},
       1},
      {"repeated images", {2, 3, 2, 2}, {{{0, 0, 3}, {1, 0, 2}}, {}, {}, {}}},
      {"channels in any order", {1, 24, 2, 3}, {{}, {{23, 1, 1}, {0, 1, 9}, {7, 1, 1}}, {}, {}}},
      {"nothing but fill", {2, 8, 2, 2}, {{}, {{-1, 1, 9}}, {}, {}}, -3},
      {"no element", {2, 8, 2, 2}, {{}, {{0, 1, 0}}, {}, {}}},
      {"a matrix", {5, 9}, {{{4, -2, 3}}, {{2, 3, 2}, {-5, 1, 1}}}, 7},
      {"one spatial dimension", {2, 17, 6}, {{}, {{1, 1, 16}}, {{0, 1, 2}, {4, 1, 2}}}},
      {"three spatial dimensions", {1, 9, 2, 3, 4}, {{}, {}, {{1, 0, 4}}, {{2, -1, 3}}, {}}},
  };
}

Dims Selected(const SelectCase& one) {
  Dims dims = one.src;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (one.from[d].empty()) continue;
    dims[d] = 0;
    for (const IndexRun& run : one.from[d]) dims[d] += run.count;
  }
  return dims;
}

// The index of the source's dimension for index i of the list; negative for the fill.
int64_t SourceIndex(const Runs& runs, int64_t i) {
  for (const IndexRun& run : runs) {
    if (i < run.count) return run.start < 0 ? -1 : run.start + i * run.step;
    i -= run.count;
  }
  return i;  // an empty list
}

template <typename T>
std::vector<T> ExpectedSelection(const SelectCase& one, const std::vector<T>& src) {
  std::vector<T> values;
  ForEachIndex(Selected(one), [&](const Dims& index) {
    int64_t at = 0;
    bool inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t from = SourceIndex(one.from[d], index[d]);
      inside = inside && from >= 0;
      at = at * one.src[d] + from;
    }
    values.push_back(inside ? src[at] : static_cast<T>(one.fill));
  });
  return values;
}

template <typename T>
std::vector<T> SelectNumbers(int64_t count) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(i % 120 + 1);
  return values;
}

class SelectTest : public RowTest<SelectDesc> {
 protected:
  SelectTest() : RowTest(CreateSelect) {}

  template <typename T = float>
  void ExpectSelection(const SelectCase& one, const MemoryDesc& src, const MemoryDesc& dst) {
    SCOPED_TRACE(absl::StrCat(one.why, ": ", src.ToString(), " -> ", dst.ToString()));
    const auto primitive = Create({src, dst, one.from, one.fill});
    if (!primitive) return;
    const std::vector<T> values = SelectNumbers<T>(src.ElementCount());
    const Bytes packed = Pack(src, values);
    const MemoryDesc& out = primitive->Desc(kArgDst);
    EXPECT_EQ(
        Unpack<T>(out, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(out, 7))),
        ExpectedSelection(one, values));
  }
};

TEST_P(SelectTest, EveryCaseInEveryLayout) {
  for (const SelectCase& one : SelectCases()) {
    for (const Layout& src : LayoutsOf(one.src)) {
      for (const Layout& dst : LayoutsOf(Selected(one))) ExpectSelection(one, src.desc, dst.desc);
    }
  }
}

TEST_P(SelectTest, ElementsOfOneAndTwoBytes) {
  for (const SelectCase& one : SelectCases()) {
    const Dims dims = Selected(one);
    ExpectSelection<int8_t>(one, Plain(one.src, DataType::kS8), Plain(dims, DataType::kS8));
    if (one.fill >= 0) {
      ExpectSelection<uint8_t>(one, Plain(one.src, DataType::kU8), Plain(dims, DataType::kU8));
    }
    ExpectSelection<int32_t>(one, Plain(one.src, DataType::kS32), Plain(dims, DataType::kS32));
    if (one.fill != 0) continue;
    ExpectSelection<uint16_t>(one, Plain(one.src, DataType::kBf16), Plain(dims, DataType::kBf16));
    ExpectSelection<uint16_t>(one, Plain(one.src, DataType::kF16), Plain(dims, DataType::kF16));
  }
}

TEST_P(SelectTest, MoreThanOnePieceOfWork) {
  const SelectCase one{"", {2, 40, 33, 31}, {{}, {{1, 2, 20}}, {}, {{0, 1, 31}, {-1, 1, 4}}}, 5};
  for (const Layout& layout : LayoutsOf(one.src))
    ExpectSelection(one, layout.desc, Plain(Selected(one)));
}

// A few channels per pixel: rows run over the pixels, too.
TEST_P(SelectTest, ShortRowsOfChannelsLast) {
  const SelectCase one{"", {2, 3, 9, 11}, {{}, {}, {{8, -1, 9}}, {{-1, 1, 2}, {0, 1, 11}}}, 2};
  ExpectSelection(one, Tagged(one.src, "nhwc"), Tagged(Selected(one), "nhwc"));
}

TEST_P(SelectTest, AnyIsTheLayoutOfTheSource) {
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw8c");
  const auto primitive = Create(
      {src, *MemoryDesc::CreateAny({2, 4, 3, 3}, DataType::kF32), {{}, {{2, 1, 4}}, {}, {}}});
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Tagged({2, 4, 3, 3}, "nChw8c"));
}

TILEWIRE_TEST_EVERY_ROW(Select);

TEST(SelectErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({4, 5}), dst = Plain({4, 2});
  const auto status = StatusOfCreating(CreateSelect);
  EXPECT_THAT(status({src, dst, {{}, {{0, 1, 2}}}}), IsOk());
  EXPECT_THAT(status({src, dst, {{{0, 1, 4}}}}), StatusIs(kInvalid, "1 lists"));
  EXPECT_THAT(status({src, dst, {{}, {{0, 1, 3}}}}), StatusIs(kInvalid, "make the 2 of dst"));
  EXPECT_THAT(status({src, dst, {{}, {}}}), StatusIs(kInvalid, "make the 2 of dst"));
  EXPECT_THAT(status({src, dst, {{}, {{4, 1, 2}}}}), StatusIs(kInvalid, "of a source of 5"));
  EXPECT_THAT(status({src, dst, {{}, {{0, -1, 2}}}}), StatusIs(kInvalid, "of a source of 5"));
  EXPECT_THAT(status({src, dst, {{}, {{0, 1, -2}}}}), StatusIs(kInvalid, "of a source of 5"));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(status({src, dst, {{}, {{1, most, 2}}}}), StatusIs(kInvalid, "of a source of 5"));
  EXPECT_THAT(status({src, dst, {{}, {{-1, 1, most}, {-1, 1, most}}}}), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status({src, Plain({4, 2}, DataType::kU8), {{}, {{0, 1, 2}}}}),
              StatusIs(kInvalid, "dst u8"));
  const MemoryDesc bytes = Plain({4, 5}, DataType::kU8);
  EXPECT_THAT(status({bytes, bytes, {{}, {}}, 256}), StatusIs(kInvalid, "the fill 256"));
  EXPECT_THAT(status({bytes, bytes, {{}, {}}, 0.5f}), StatusIs(kInvalid, "the fill 0.5"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(CreateSelect({src, src, {{}, {}}}, relu, {}), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
