// SPDX-License-Identifier: Apache-2.0
//
// Every row of attention's table against double precision. With u = 2^-24, a score of D products
// and i masks is off by at most e = (D + i + 2) u times the sum of its terms' magnitudes (Higham
// 2002, 3.1). The share of a key is off by a factor of e^(2e), by the error of two exponentials,
// 2^-21, and by the N additions of their sum; N products and sums with the values follow. Errors of
// second order are far below the constants that are added.
#include "engine/primitives/attention/attention.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Case {
  const char* why;
  int64_t batches, heads, groups, queries, keys, depth, columns;
  std::vector<Dims> masks = {};
  bool causal = false;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"one element", 1, 1, 1, 1, 1, 1, 1},
      {"one key", 2, 2, 2, 5, 1, 4, 3},
      {"whole vectors and tiles", 1, 2, 2, 12, 64, 32, 64},
      {"tails in every dimension", 2, 3, 3, 13, 37, 9, 21},
      {"ViT-B/16", 1, 1, 1, 197, 197, 64, 64},
      {"Swin, with a bias of heads and a mask of windows",
       4,
       3,
       3,
       49,
       49,
       32,
       32,
       {{1, 3, 49, 49}, {2, 1, 49, 49}}},
      {"panels that differ in width", 1, 1, 1, 7, 80, 16, 80},
      {"several blocks of rows, and a piece more", 1, 1, 1, 531, 20, 3, 2},
      {"keys that no block of scores holds many rows of", 1, 1, 1, 13, 3000, 2, 3},
      {"grouped heads", 2, 6, 2, 9, 20, 16, 16},
      {"all heads share keys", 1, 4, 1, 10, 33, 8, 12},
      {"one query, as in decoding", 1, 4, 4, 1, 130, 64, 64},
      {"a mask of the keys of a batch", 2, 2, 2, 5, 19, 8, 8, {{2, 1, 1, 19}}},
      {"a mask of the queries alone", 2, 2, 2, 5, 19, 8, 8, {{1, 1, 5, 1}}},
      {"a mask of everything", 2, 3, 3, 7, 18, 8, 8, {{2, 3, 7, 18}}},
      {"masks over panels", 1, 1, 1, 7, 80, 16, 80, {{1, 1, 7, 80}, {1, 1, 1, 80}}},
      {"a mask that is copied too", 2, 2, 2, 5, 19, 8, 8, {{2, 2, 5, 19}, {1, 1, 5, 1}}},
      {"three masks: copied", 2, 2, 2, 5, 20, 8, 8, {{1, 1, 5, 20}, {2, 1, 1, 20}, {1, 2, 5, 20}}},
      {"panels of values that are read in place", 2, 4, 2, 9, 20, 16, 96},
      {"causal", 1, 2, 2, 40, 40, 16, 16, {}, true},
      {"causal, fewer queries than keys, masked", 2, 2, 1, 17, 33, 8, 8, {{1, 1, 17, 33}}, true},
      {"causal, more queries than keys", 1, 1, 1, 33, 17, 8, 8, {}, true},
      {"no key: zeros", 1, 2, 2, 3, 0, 4, 5},
      {"no query", 1, 2, 2, 0, 3, 4, 5},
      {"no element of a key: equal shares", 1, 1, 1, 3, 4, 0, 2},
  };
  return *cases;
}

// Dimensions 1 and 2 exchanged in memory, as where heads lie side by side in a row; and the last
// two, as where keys come turned.
MemoryDesc Swapped(const Dims& dims, int a, int b) {
  Dims swapped = dims;
  std::swap(swapped[a], swapped[b]);
  std::vector<int> order = {0, 1, 2, 3};
  std::swap(order[a], order[b]);
  return *Plain(swapped).Permuted(order);
}

AttentionDesc DescOf(const Case& c) {
  AttentionDesc desc;
  desc.srcs = {Plain({c.batches, c.heads, c.queries, c.depth}),
               Plain({c.batches, c.groups, c.keys, c.depth}),
               Plain({c.batches, c.groups, c.keys, c.columns})};
  for (const Dims& mask : c.masks) desc.srcs.push_back(Plain(mask));
  desc.dst = Plain({c.batches, c.heads, c.queries, c.columns});
  desc.scale = 0.5f;
  desc.causal = c.causal;
  return desc;
}

class AttentionTest : public RowTest<AttentionDesc> {
 protected:
  using Operands = std::vector<std::vector<float>>;

  AttentionTest() : RowTest(CreateAttention) {}

  static Operands Random(const AttentionDesc& desc) {
    Operands operands;
    for (size_t i = 0; i < desc.srcs.size(); ++i)
      operands.push_back(RandomFloats(desc.srcs[i].ElementCount(), i + 1));
    // Some keys do not take part, but never all of them.
    for (size_t i = 3; i < operands.size(); ++i) {
      for (size_t n = 0; n < operands[i].size() && desc.srcs[i].dim(3) > 1; ++n) {
        if (n % 5 == 3) operands[i][n] = kNever;
      }
    }
    return operands;
  }

  std::optional<std::vector<float>> Attend(const AttentionDesc& desc, const Operands& operands) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const std::vector<Bytes> packed = PackAll(desc.srcs, operands);
    const MemoryDesc& to = primitive->Desc(kArgDst);
    return Unpack<float>(
        to, ExecuteAllWays(*primitive, MultipleSources(packed), kArgDst, Garbage(to, 7)));
  }

  // In double precision.
  struct Row {
    std::vector<double> shares;
    double error = 0;  // of a score
  };
  static Row SharesOf(const AttentionDesc& desc, const Operands& operands, const Dims& index) {
    const auto at = [&](size_t i, const Dims& of) {
      const Dims& dims = desc.srcs[i].dims();
      return double{operands[i][((of[0] * dims[1] + of[1]) * dims[2] + of[2]) * dims[3] + of[3]]};
    };
    const Dims &queries = desc.srcs[0].dims(), &keys = desc.srcs[1].dims();
    const int64_t group = index[1] / (queries[1] / keys[1]);
    Row row;
    double highest = kNever, total = 0;
    for (int64_t n = 0; n < keys[2]; ++n) {
      double score = 0, magnitudes = 0;
      for (int64_t d = 0; d < keys[3]; ++d) {
        const double term =
            desc.scale * at(0, {index[0], index[1], index[2], d}) * at(1, {index[0], group, n, d});
        score += term;
        magnitudes += std::abs(term);
      }
      for (size_t i = 3; i < desc.srcs.size(); ++i) {
        const Dims& mask = desc.srcs[i].dims();
        Dims of = {index[0] % mask[0], index[1], index[2], n};
        for (int d = 1; d < 4; ++d) of[d] = mask[d] == 1 ? 0 : of[d];
        score += at(i, of);
        if (std::isfinite(at(i, of))) magnitudes += std::abs(at(i, of));
      }
      if (desc.causal && n > index[2]) score = kNever;
      row.error = std::max(row.error, (keys[3] + desc.srcs.size()) * 0x1p-24 * magnitudes);
      highest = std::max(highest, score);
      row.shares.push_back(score);
    }
    for (double& share : row.shares) total += share = std::exp(share - highest);
    for (double& share : row.shares) share /= total;
    return row;
  }

  void ExpectAttention(const AttentionDesc& desc) {
    const Operands operands = Random(desc);
    const auto result = Attend(desc, operands);
    if (!result) return;
    const MemoryDesc values = Plain(desc.srcs[2].dims());
    const int64_t columns = desc.dst.dim(3), keys = values.dim(2);
    const int64_t shared_by = desc.dst.dim(1) / values.dim(1);
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
      static Row row;
      if (index[3] == 0) row = SharesOf(desc, operands, index);
      double sum = 0, magnitudes = 0;
      for (int64_t n = 0; n < keys; ++n) {
        const double term =
            row.shares[n] *
            operands[2][values.Offset({index[0], index[1] / shared_by, n, index[3]})];
        sum += term;
        magnitudes += std::abs(term);
      }
      const double tolerance =
          magnitudes * (2 * row.error + 0x1p-21 + (2.0 * keys + 8) * 0x1p-24) + 1e-30;
      ASSERT_NEAR((*result)[i], sum, tolerance) << "element " << i << " of " << columns << " each";
      ++i;
    });
  }
};

TEST_P(AttentionTest, EveryShape) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    ExpectAttention(DescOf(c));
  }
}

TEST_P(AttentionTest, HeadsSideBySideAndKeysTurned) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    AttentionDesc desc = DescOf(c);
    for (MemoryDesc* tensor : {&desc.srcs[0], &desc.srcs[2], &desc.dst})
      *tensor = Swapped(tensor->dims(), 1, 2);
    desc.srcs[1] = Swapped(desc.srcs[1].dims(), 2, 3);
    ExpectAttention(desc);
  }
}

TEST_P(AttentionTest, PartsOfOneProjection) {
  const Dims whole = {2, 2, 19, 3 * 20}, dims = {2, 2, 19, 20};
  AttentionDesc desc;
  for (int64_t i = 0; i < 3; ++i)
    desc.srcs.push_back(*Plain(whole).SubMemory(dims, {0, 0, 0, 20 * i}));
  desc.dst = Plain(dims);
  ExpectAttention(desc);
}

// One query gives the same bits whatever the other queries, heads and batches.
TEST_P(AttentionTest, RowsDoNotDependOnEachOther) {
  constexpr int64_t kQueries = 300, kKeys = 41, kDepth = 16, kColumns = 24;
  AttentionDesc desc = DescOf({"all", 2, 2, 2, kQueries, kKeys, kDepth, kColumns});
  const Operands operands = Random(desc);
  const auto all = Attend(desc, operands);
  ASSERT_TRUE(all);
  const auto part = [](const std::vector<float>& of, int64_t from, int64_t count) {
    return std::vector<float>(of.begin() + from, of.begin() + from + count);
  };
  for (int64_t row : {0, 5, 299, 300, 907, 1199}) {
    const int64_t head = row / kQueries;
    const auto one = Attend(DescOf({"one", 1, 1, 1, 1, kKeys, kDepth, kColumns}),
                            {part(operands[0], row * kDepth, kDepth),
                             part(operands[1], head * kKeys * kDepth, kKeys * kDepth),
                             part(operands[2], head * kKeys * kColumns, kKeys * kColumns)});
    EXPECT_EQ(BitsOf(*one), BitsOf(part(*all, row * kColumns, kColumns)));
  }
}

TEST_P(AttentionTest, AnyIsRowMajor) {
  AttentionDesc desc = DescOf({"", 1, 2, 2, 3, 4, 5, 6});
  desc.dst = *MemoryDesc::CreateAny({1, 2, 3, 6}, DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Plain({1, 2, 3, 6}));
}

TILEWIRE_TEST_EVERY_ROW(Attention);

TEST(AttentionErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateAttention);
  const auto with = [](int src, const Dims& dims) {
    AttentionDesc desc = DescOf({"", 2, 4, 2, 3, 5, 6, 7, {{1, 1, 3, 5}}});
    desc.srcs[src] = Plain(dims);
    return desc;
  };
  EXPECT_THAT(status(with(1, {2, 2, 5, 5})), StatusIs(kInvalid, "keys do not fit"));
  EXPECT_THAT(status(with(1, {2, 3, 5, 6})), StatusIs(kInvalid, "keys do not fit"));
  EXPECT_THAT(status(with(2, {2, 2, 4, 7})), StatusIs(kInvalid, "values do not fit"));
  EXPECT_THAT(status(with(2, {2, 2, 5, 8})), StatusIs(kInvalid, "dst does not fit"));
  EXPECT_THAT(status(with(3, {3, 1, 3, 5})), StatusIs(kInvalid, "does not fit the scores"));
  EXPECT_THAT(status(with(3, {1, 1, 2, 5})), StatusIs(kInvalid, "does not fit the scores"));
  EXPECT_THAT(status(with(3, {3, 5})), StatusIs(kInvalid, "rank 4"));
  AttentionDesc two = with(3, {1, 1, 3, 5});
  two.srcs.resize(2);
  EXPECT_THAT(status(two), StatusIs(kInvalid, "queries, keys and values"));
  AttentionDesc typed = with(3, {1, 1, 3, 5});
  typed.srcs[0] = Plain({2, 4, 3, 6}, DataType::kS8);
  EXPECT_THAT(status(typed), StatusIs(kUnimplemented, "f32"));
}

}  // namespace
}  // namespace tilewire::testing
