// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/integer_sum/integer_sum.h"

#include <algorithm>
#include <cmath>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct IntegerSumCase {
  const char* why;
  std::vector<DataType> types;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  DataType dst;
  float dst_scale;
  int32_t dst_zero_point;
  bool relu;
};

std::vector<IntegerSumCase> IntegerSumCases() {
  constexpr DataType kU8 = DataType::kU8, kS8 = DataType::kS8;
  return {
      {"a residual connection", {kU8, kU8}, {0.5f, 0.25f}, {128, 3}, kU8, 0.5f, 7, true},
      {"halves go to the even one", {kS8, kS8}, {0.5f, 0.5f}, {0, 0}, kS8, 1, 0, false},
      {"types that differ", {kU8, kS8}, {0.3f, 0.7f}, {100, -5}, kS8, 0.9f, -20, false},
      {"saturates at both ends", {kS8, kS8, kS8}, {2, 3, 1}, {0, 1, 2}, kU8, 0.5f, 9, false},
      {"one source", {kU8}, {0.1f}, {50}, kS8, 0.2f, 0, true},
      {"five sources",
       {kU8, kS8, kU8, kS8, kU8},
       {0.1f, 0.2f, 0.3f, 0.4f, 0.5f},
       {1, 2, 3, 4, 5},
       kU8,
       1.5f,
       128,
       false},
  };
}

float IntegerResult(const IntegerSumCase& one, const std::vector<std::vector<float>>& sources,
                    size_t i) {
  float real = (sources[0][i] - one.zero_points[0]) * one.scales[0];
  for (size_t s = 1; s < sources.size(); ++s)
    real += (sources[s][i] - one.zero_points[s]) * one.scales[s];
  if (one.relu) real = std::max(real, 0.0f);
  const float lowest = one.dst == DataType::kU8 ? 0 : -128;
  const float highest = one.dst == DataType::kU8 ? 255 : 127;
  return std::clamp(std::nearbyint(real / one.dst_scale) + one.dst_zero_point, lowest, highest);
}

class IntegerSumTest : public RowTest<IntegerSumDesc> {
 protected:
  IntegerSumTest() : RowTest(CreateIntegerSum) {}

  void ExpectIntegerSum(const IntegerSumCase& one, const Dims& dims, size_t from, size_t to) {
    IntegerSumDesc desc{{},
                        LayoutsOf(dims, one.dst)[to].desc,
                        one.scales,
                        one.zero_points,
                        one.dst_scale,
                        one.dst_zero_point,
                        one.relu};
    for (DataType type : one.types) desc.srcs.push_back(LayoutsOf(dims, type)[from].desc);
    SCOPED_TRACE(absl::StrCat(one.why, ": ", desc.srcs[0].ToString(), " -> ", desc.dst.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    std::vector<Bytes> packed;
    for (size_t s = 0; s < desc.srcs.size(); ++s)
      packed.push_back(RandomTensor(desc.srcs[s], 11 * s));
    Inputs inputs;
    std::vector<std::vector<float>> sources;
    for (size_t s = 0; s < packed.size(); ++s) {
      inputs.emplace_back(kArgMultipleSrc + static_cast<int>(s), &packed[s]);
      sources.push_back(ElementValues(desc.srcs[s], packed[s]));
    }
    std::vector<float> expected;
    for (size_t i = 0; i < sources[0].size(); ++i)
      expected.push_back(IntegerResult(one, sources, i));
    EXPECT_EQ(
        ElementValues(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7))),
        expected);
  }
};

TEST_P(IntegerSumTest, EveryCaseInEveryLayout) {
  for (const IntegerSumCase& one : IntegerSumCases()) {
    for (const Dims& dims : {Dims{2, 17, 3, 4}, Dims{1, 3, 5}, Dims{1, 16, 2, 1, 3}, Dims{3, 40}}) {
      for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout)
        ExpectIntegerSum(one, dims, layout, layout);
    }
  }
}

// Around the vectors of 8 and 16 lanes, of which four are computed at once.
TEST_P(IntegerSumTest, EveryTail) {
  for (int64_t count = 0; count < 150; ++count)
    ExpectIntegerSum(IntegerSumCases()[0], {1, count}, 0, 0);
}

TEST_P(IntegerSumTest, LayoutsThatDiffer) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "takes one layout only";
  const Dims dims = {2, 17, 3, 4};
  for (size_t from = 0; from < LayoutsOf(dims).size(); ++from) {
    for (size_t to = 0; to < LayoutsOf(dims).size(); ++to)
      ExpectIntegerSum(IntegerSumCases()[2], dims, from, to);
  }
}

TEST_P(IntegerSumTest, MoreThanOnePieceOfWork) {
  for (const IntegerSumCase& one : IntegerSumCases()) ExpectIntegerSum(one, {2, 40, 33, 31}, 1, 1);
}

TILEWIRE_TEST_EVERY_ROW(IntegerSum);

TEST(IntegerSumErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc bytes = Plain({4, 5}, DataType::kU8);
  const auto status = StatusOfCreating(CreateIntegerSum);
  EXPECT_THAT(status({{bytes}, bytes, {1}, {0}}), IsOk());
  EXPECT_THAT(status({{}, bytes, {}, {}}), StatusIs(kInvalid, "no source"));
  EXPECT_THAT(status({{bytes}, bytes, {1, 1}, {0}}), StatusIs(kInvalid, "2 scales"));
  EXPECT_THAT(status({{bytes}, bytes, {1}, {}}), StatusIs(kInvalid, "0 zero points"));
  EXPECT_THAT(status({{bytes}, bytes, {-1}, {0}}), StatusIs(kInvalid, "not positive"));
  EXPECT_THAT(status({{bytes}, bytes, {1}, {0}, 0}), StatusIs(kInvalid, "not positive"));
  EXPECT_THAT(status({{bytes}, Plain({4, 6}, DataType::kU8), {1}, {0}}),
              StatusIs(kInvalid, "does not match dst"));
  EXPECT_THAT(status({{Plain({4, 5})}, bytes, {1}, {0}}),
              StatusIs(kUnimplemented, "does not add up f32"));
  EXPECT_THAT(status({{bytes}, Plain({4, 5}), {1}, {0}}),
              StatusIs(kUnimplemented, "does not write f32"));
}

}  // namespace
}  // namespace tilewire::testing
