// SPDX-License-Identifier: Apache-2.0
//
// Backward of gather: each row of the gradient is the sum of what its indices took.
#include "engine/primitives/gather/gather.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

class GatherBackwardTest : public RowTest<GatherDesc> {
 protected:
  GatherBackwardTest() : RowTest(CreateGather) {}
};

TEST_P(GatherBackwardTest, SumsOverTheIndicesThatNameARow) {
  struct Axis {
    int axis;
    Dims src, dst;
  };
  const MemoryDesc indices = Plain({2, 3}, DataType::kS32);
  const std::vector<int32_t> rows = {1, -1, 1, 0, 3, 1};
  for (const Axis& one : {Axis{0, {4, 5}, {2, 3, 5}}, Axis{1, {3, 4, 2}, {3, 2, 3, 2}},
                          Axis{2, {2, 3, 4}, {2, 3, 2, 3}}}) {
    for (const Layout& layout : LayoutsOf(one.src)) {
      SCOPED_TRACE(layout.why);
      const GatherDesc desc{one.axis, layout.desc, indices, Plain(one.dst),
                            PropKind::kBackwardWeights};
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const std::vector<float> dy = RandomFloats(desc.dst.ElementCount(), 1, -1, 1);
      const Bytes which = Pack(indices, rows), diff_dst = Pack(desc.dst, dy);
      const Bytes dw = ExecuteAllWays(*primitive, {{kArgSrc1, &which}, {kArgDiffDst, &diff_dst}},
                                      kArgDiffWeights, Garbage(desc.src, 7));
      const MemoryDesc plain = Plain(one.src);
      Doubles expected(plain.ElementCount(), 0);
      ForEachIndex(one.dst, [&](const Dims& at) {
        const int32_t row = rows[at[one.axis] * 3 + at[one.axis + 1]];
        Dims to(at.begin(), at.begin() + one.axis);
        to.push_back(row < 0 ? row + one.src[one.axis] : row);
        to.insert(to.end(), at.begin() + one.axis + 2, at.end());
        expected[plain.Offset(to)] += dy[desc.dst.Offset(at)];
      });
      ExpectGradient(Unpack<float>(desc.src, dw), expected, 1e-6);
    }
  }
}

// More rows than a piece of work has, slices of whole lines and less, rows that nothing names; sums
// of small integers are exact.
TEST_P(GatherBackwardTest, ManyRowsAndLongSlices) {
  for (const Dims& src : {Dims{700, 67}, Dims{5, 90, 16}, Dims{3, 1000}}) {
    const int axis = src == Dims{700, 67} ? 0 : 1;
    const int64_t count = src == Dims{700, 67} ? 40 : 120;
    Dims dst = src;
    dst[axis] = count;
    const MemoryDesc indices = Plain({count}, DataType::kS64);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < count; ++i) rows.push_back(i * i % src[axis] / 2);
    const GatherDesc desc{axis, Plain(src), indices, Plain(dst), PropKind::kBackwardWeights};
    SCOPED_TRACE(desc.src.ToString());
    const auto primitive = Create(desc);
    if (!primitive) continue;
    const std::vector<float> dy = RandomIntegers(desc.dst.ElementCount(), 1);
    const Bytes which = Pack(indices, rows), diff_dst = Pack(desc.dst, dy);
    const Bytes dw = ExecuteAllWays(*primitive, {{kArgSrc1, &which}, {kArgDiffDst, &diff_dst}},
                                    kArgDiffWeights, Garbage(desc.src, 7));
    std::vector<float> expected(desc.src.ElementCount(), 0);
    ForEachIndex(dst, [&](Dims at) {
      const float gradient = dy[desc.dst.Offset(at)];
      at[axis] = rows[at[axis]];
      expected[desc.src.Offset(at)] += gradient;
    });
    EXPECT_EQ(Unpack<float>(desc.src, dw), expected);
  }
}

TEST_P(GatherBackwardTest, AnIndexOutsideIsNamed) {
  const MemoryDesc indices = Plain({2}, DataType::kS32);
  const auto primitive =
      Create({0, Plain({4, 5}), indices, Plain({2, 5}), PropKind::kBackwardWeights});
  if (!primitive) return;
  const Bytes which = Pack<int32_t>(indices, {1, 4}), dy = Garbage(Plain({2, 5}), 1);
  Bytes dw = Garbage(Plain({4, 5}), 2);
  ExecuteArgs args;
  args.Set(kArgSrc1, which.data()).Set(kArgDiffDst, dy.data()).Set(kArgDiffWeights, dw.data());
  EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
              StatusIs(kInvalid, "index 4 is outside"));
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Gather);

TEST(GatherBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateGather);
  const MemoryDesc indices = Plain({2}, DataType::kS32);
  constexpr auto kWeights = PropKind::kBackwardWeights;
  EXPECT_THAT(status({0, MemoryDesc(), indices, Plain({2, 5}), kWeights}),
              StatusIs(kInvalid, "src is missing"));
  EXPECT_THAT(status({0, Plain({4, 5}), indices, Plain({3, 5}), kWeights}),
              StatusIs(kInvalid, "gather along axis 0"));
  EXPECT_THAT(status({0, Plain({4, 5}), indices, Plain({2, 5}), PropKind::kBackwardData}),
              StatusIs(kUnimplemented, "does not run backward_data"));
  const DataType s32 = DataType::kS32;
  EXPECT_THAT(status({0, Plain({4, 5}, s32), indices, Plain({2, 5}, s32), kWeights}),
              StatusIs(kUnimplemented, "not s32"));
}

}  // namespace
}  // namespace tilewire::testing
