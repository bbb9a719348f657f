// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/top_k/top_k.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

// Few different numbers, so that lines have equal ones; some are NaN or infinite.
std::vector<float> RankedValues(int64_t count) {
  std::vector<float> values(count);
  Random random(3);
  for (float& value : values) {
    const uint64_t bits = random.Next() % 13;
    value = bits == 12   ? std::numeric_limits<float>::quiet_NaN()
            : bits == 11 ? -std::numeric_limits<float>::infinity()
                         : static_cast<float>(bits) - 5;
  }
  return values;
}

// A number that is as large as the element ranks.
double RankOf(float x) { return std::isnan(x) ? 1e300 : static_cast<double>(x); }

class TopKTest : public RowTest<TopKDesc> {
 protected:
  TopKTest() : RowTest(CreateTopK) {}

  void ExpectBest(const TopKDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString(), " axis ", desc.axis,
                              " ", desc.largest, desc.indices, desc.last_of_equals));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> values = RankedValues(desc.src.ElementCount());
    const Bytes packed = Pack(desc.src, values);
    const std::vector<float> got = Unpack<float>(
        desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(desc.dst, 7)));
    const MemoryDesc plain = Plain(desc.src.dims());
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](Dims index) {
      const int64_t place = index[desc.axis];
      std::vector<std::pair<double, int64_t>> line;  // sorted: best first
      for (int64_t a = 0; a < plain.dim(desc.axis); ++a) {
        index[desc.axis] = a;
        const double rank = RankOf(values[plain.Offset(index)]);
        line.emplace_back(desc.largest ? -rank : rank, desc.last_of_equals ? -a : a);
      }
      std::sort(line.begin(), line.end());
      index[desc.axis] = std::abs(line[place].second);
      const float element = values[plain.Offset(index)];
      const float expected = desc.indices ? static_cast<float>(index[desc.axis]) : element;
      ASSERT_TRUE(got[i] == expected || (std::isnan(got[i]) && std::isnan(expected)))
          << "element " << i << ": " << got[i] << ", not " << expected;
      ++i;
    });
  }
};

TEST_P(TopKTest, EveryAxisAndLayout) {
  for (const Dims& dims : {Dims{2, 17, 5}, Dims{3, 9, 3, 4}, Dims{5, 40}}) {
    for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
      for (int64_t count : {int64_t{0}, int64_t{1}, dims[axis] / 2, dims[axis]}) {
        Dims best = dims;
        best[axis] = count;
        for (size_t layout = 0; layout < LayoutsOf(dims).size(); ++layout) {
          ExpectBest({LayoutsOf(dims)[layout].desc, LayoutsOf(best)[layout].desc, axis});
          ExpectBest({LayoutsOf(dims)[layout].desc, Plain(best), axis, true, true});
        }
      }
    }
  }
}

TEST_P(TopKTest, EveryOrder) {
  for (bool largest : {false, true}) {
    for (bool indices : {false, true}) {
      for (bool last : {false, true})
        ExpectBest({Plain({20, 100}), Plain({20, 7}), 1, largest, indices, last});
    }
  }
}

TEST_P(TopKTest, MoreThanOnePieceOfWork) {
  ExpectBest({Plain({90, 1000}), Plain({90, 5}), 1});
  ExpectBest({Plain({1, 40000}), Plain({1, 3}), 1, true, true});
}

// Longer than what is held at once, with many equal elements and NaN.
TEST_P(TopKTest, LongLines) {
  for (bool largest : {false, true}) {
    for (bool last : {false, true}) {
      ExpectBest({Plain({1, 2003}), Plain({1, 150}), 1, largest, true, last});
      ExpectBest({Plain({1, 700}), Plain({1, 690}), 1, largest, true, last});
      ExpectBest({Plain({1, 500, 2}), Plain({1, 200, 2}), 1, largest, false, last});
    }
  }
}

TEST_P(TopKTest, LongLinesOfIntegers) {
  constexpr int64_t kCount = 3000, kBest = 170;
  const auto expect = [&](DataType type, auto zero) {
    using T = decltype(zero);
    SCOPED_TRACE(DataTypeName(type));
    const MemoryDesc src = Plain({kCount}, type), dst = Plain({kBest}, type);
    std::vector<T> numbers(kCount);
    FillGarbage(numbers.data(), numbers.size() * sizeof(T), 11);
    std::vector<T> sorted = numbers;
    std::sort(sorted.begin(), sorted.end(), std::greater<T>());
    const auto primitive = Create({src, dst, 0});
    if (!primitive) return;
    const Bytes packed = Pack(src, numbers);
    EXPECT_EQ(
        Unpack<T>(dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(dst, 7))),
        std::vector<T>(sorted.begin(), sorted.begin() + kBest));
  };
  expect(DataType::kU8, uint8_t());
  expect(DataType::kS16, int16_t());
  expect(DataType::kU32, uint32_t());
  expect(DataType::kS64, int64_t());
}

// Integers that f32 does not tell apart.
TEST_P(TopKTest, LargeIntegers) {
  const MemoryDesc src = Plain({2, 3}, DataType::kS64), dst = Plain({2, 2}, DataType::kS64);
  constexpr int64_t kLarge = int64_t{1} << 62, kLeast = std::numeric_limits<int64_t>::min();
  const Bytes packed =
      Pack<int64_t>(src, {kLarge, kLarge + 2, kLarge + 1, -kLarge, kLeast, kLeast + 1});
  const auto best = [&](const MemoryDesc& to, bool largest, bool indices) {
    const auto primitive = Create({src, to, 1, largest, indices});
    return primitive ? ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(to, 7))
                     : Bytes();
  };
  EXPECT_EQ(Unpack<int64_t>(dst, best(dst, true, false)),
            (std::vector<int64_t>{kLarge + 2, kLarge + 1, -kLarge, kLeast + 1}));
  EXPECT_EQ(Unpack<int64_t>(dst, best(dst, false, false)),
            (std::vector<int64_t>{kLarge, kLarge + 1, kLeast, kLeast + 1}));
  const MemoryDesc indices = Plain({2, 2});
  EXPECT_EQ(Unpack<float>(indices, best(indices, true, true)), (std::vector<float>{1, 2, 0, 2}));
}

TILEWIRE_TEST_EVERY_ROW(TopK);

TEST(TopKErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc src = Plain({4, 5}), dst = Plain({4, 2});
  const auto status = StatusOfCreating(CreateTopK);
  EXPECT_THAT(status({src, dst, 1}), IsOk());
  EXPECT_THAT(status({src, dst, 2}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({src, dst, 0}), StatusIs(kInvalid, "along axis 0"));
  EXPECT_THAT(status({dst, src, 1}), StatusIs(kInvalid, "along axis 1"));
  const MemoryDesc bytes = Plain({4, 5}, DataType::kU8), halves = Plain({4, 5}, DataType::kF16);
  EXPECT_THAT(status({bytes, bytes, 1}), IsOk());
  EXPECT_THAT(status({bytes, dst, 1}), StatusIs(kUnimplemented, "u8 only"));
  EXPECT_THAT(status({halves, halves, 1}), StatusIs(kUnimplemented, "f32 only"));
}

}  // namespace
}  // namespace tilewire::testing
