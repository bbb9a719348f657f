// SPDX-License-Identifier: Apache-2.0
//
// Every row of matmul's table against double precision: K products and sums are off by at most
// K 2^-24 of the sum of their magnitudes (Higham 2002, 3.1).
#include "engine/primitives/matmul/matmul.h"

#include <cmath>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct Case {
  const char* why;
  Dims src, weights, bias, dst;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"one element", {1, 1}, {1, 1}, {}, {1, 1}},
      {"below every tile", {3, 5}, {5, 7}, {1, 7}, {3, 7}},
      {"exactly one tile", {8, 64}, {64, 48}, {1, 48}, {8, 48}},
      {"tails in every dimension", {13, 65}, {65, 101}, {1, 101}, {13, 101}},
      {"enough rows to copy the weights", {70, 33}, {33, 61}, {1, 61}, {70, 61}},
      {"more rows than a task takes", {267, 9}, {9, 100}, {}, {267, 100}},
      {"a vector times a matrix", {1, 300}, {300, 50}, {1, 50}, {1, 50}},
      {"a matrix times a vector", {50, 30}, {30, 1}, {1, 1}, {50, 1}},
      {"an outer product", {17, 1}, {1, 49}, {}, {17, 49}},
      {"a bias for every element", {5, 6}, {6, 20}, {5, 20}, {5, 20}},
      {"a bias for every row", {5, 6}, {6, 20}, {5, 1}, {5, 20}},
      {"batched", {3, 4, 7}, {3, 7, 18}, {1, 1, 18}, {3, 4, 18}},
      {"batched, one weights", {3, 40, 7}, {1, 7, 52}, {1, 1, 52}, {3, 40, 52}},
      {"batched, one src", {1, 4, 7}, {3, 7, 18}, {}, {3, 4, 18}},
      {"two batch dimensions, broadcast crosswise",
       {2, 1, 5, 6},
       {1, 3, 6, 20},
       {1, 1, 1, 20},
       {2, 3, 5, 20}},
      {"attention's scores", {2, 2, 37, 16}, {2, 2, 16, 37}, {}, {2, 2, 37, 37}},
      {"batched, many columns", {3, 20, 48}, {3, 48, 50}, {1, 1, 50}, {3, 20, 50}},
      {"batched crosswise, many columns", {2, 1, 35, 40}, {1, 3, 40, 33}, {}, {2, 3, 35, 33}},
      {"a row each of many products", {3, 21, 1, 64}, {3, 21, 64, 64}, {}, {3, 21, 1, 64}},
      {"a row each, and a tail", {20, 1, 29}, {20, 29, 29}, {1, 1, 29}, {20, 1, 29}},
      {"two rows of several tiles", {5, 2, 9}, {5, 9, 301}, {1, 1, 301}, {5, 2, 301}},
      {"three rows and a tail", {4, 3, 11}, {4, 11, 53}, {}, {4, 3, 53}},
      {"a row each, one weights", {5, 7, 1, 40}, {1, 1, 40, 50}, {1, 1, 1, 50}, {5, 7, 1, 50}},
      {"several parts of K", {13, 200}, {200, 101}, {1, 101}, {13, 101}},
      {"several parts of K, few rows, several pieces", {3, 150}, {150, 601}, {}, {3, 601}},
      {"several parts of K, more rows than a piece", {131, 129}, {129, 70}, {}, {131, 70}},
      {"a row of several parts and pieces", {1, 131}, {131, 1100}, {1, 1100}, {1, 1100}},
      {"two rows, whole vectors of K", {2, 160}, {160, 33}, {1, 33}, {2, 33}},
      {"four rows, one product more than vectors", {4, 129}, {129, 16}, {}, {4, 16}},
      {"batched, parts of K", {3, 5, 140}, {3, 140, 21}, {1, 1, 21}, {3, 5, 21}},
      {"a matrix times a vector, parts of K", {9, 140}, {140, 1}, {}, {9, 1}},
      {"no row", {0, 4}, {4, 3}, {}, {0, 3}},
      {"nothing to add: the bias", {3, 0}, {0, 5}, {1, 5}, {3, 5}},
  };
  return *cases;
}

MemoryDesc BiasOf(const Case& c) { return c.bias.empty() ? MemoryDesc() : Plain(c.bias); }

// The last two dimensions exchanged in memory.
MemoryDesc Transposed(const Dims& dims) {
  Dims swapped = dims;
  std::swap(swapped[dims.size() - 1], swapped[dims.size() - 2]);
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) order.push_back(d);
  std::swap(order[dims.size() - 1], order[dims.size() - 2]);
  return *Plain(swapped).Permuted(order);
}

class MatmulTest : public RowTest<MatmulDesc> {
 protected:
  MatmulTest() : RowTest(CreateMatmul) {}

  struct Operands {
    std::vector<float> src, weights, bias, before;
  };
  static Operands Random(const MatmulDesc& desc) {
    return {RandomFloats(desc.src.ElementCount(), 1), RandomFloats(desc.weights.ElementCount(), 2),
            RandomFloats(desc.bias.ElementCount(), 3), RandomFloats(desc.dst.ElementCount(), 4)};
  }

  std::optional<std::vector<float>> Multiply(const MatmulDesc& desc, const Operands& operands,
                                             const Attributes& attributes = {}) {
    const auto primitive = Create(desc, attributes);
    if (!primitive) return std::nullopt;
    const MemoryDesc &from = primitive->Desc(kArgSrc), &weights = primitive->Desc(kArgWeights);
    const Bytes src = Pack(from, operands.src), by = Pack(weights, operands.weights);
    Inputs inputs = {{kArgSrc, &src}, {kArgWeights, &by}};
    Bytes bias;
    if (!desc.bias.IsZero()) {
      bias = Pack(primitive->Desc(kArgBias), operands.bias);
      inputs.push_back({kArgBias, &bias});
    }
    const MemoryDesc& to = primitive->Desc(kArgDst);
    return Unpack<float>(to,
                         ExecuteAllWays(*primitive, inputs, kArgDst, Pack(to, operands.before)));
  }

  void ExpectProduct(const MatmulDesc& desc, const Attributes& attributes = {}) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " x ", desc.weights.ToString(), " -> ",
                              desc.dst.ToString()));
    const Operands operands = Random(desc);
    const auto result = Multiply(desc, operands, attributes);
    if (!result) return;
    const BroadcastOffsets src(Plain(desc.src.dims())), weights(Plain(desc.weights.dims()));
    const bool has_bias = !desc.bias.IsZero();
    const BroadcastOffsets bias(has_bias ? Plain(desc.bias.dims()) : desc.bias);
    const int last = desc.src.rank() - 1;
    const int64_t count = desc.src.dim(last);
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
      double sum = 0, magnitudes = 0;
      Dims row = index, column = index;
      for (int64_t k = 0; k < count; ++k) {
        row[last] = column[last - 1] = k;
        const double term = static_cast<double>(operands.src[src.Offset(row)]) *
                            operands.weights[weights.Offset(column)];
        sum += term;
        magnitudes += std::abs(term);
      }
      if (has_bias) sum += operands.bias[bias.Offset(index)];
      if (!attributes.post_ops.empty()) sum = std::max(sum + 2.0 * operands.before[i], 0.0);
      const double tolerance = ((count + 4.0) * 0x1p-24 + LeftOut(GetParam())) * (magnitudes + 4);
      ASSERT_NEAR((*result)[i], sum, tolerance) << "element " << i;
      ++i;
    });
  }
};

TEST_P(MatmulTest, EveryShape) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    const MatmulDesc desc{Plain(c.src), Plain(c.weights), BiasOf(c), Plain(c.dst)};
    ExpectProduct(desc);
    ExpectProduct({Transposed(c.src), desc.weights, desc.bias, desc.dst});
    ExpectProduct({desc.src, Transposed(c.weights), desc.bias, desc.dst});
    ExpectProduct({desc.src, desc.weights, desc.bias, Transposed(c.dst)});
  }
}

TEST_P(MatmulTest, EveryShapeWithPostOps) {
  Attributes attributes;
  ASSERT_THAT(attributes.post_ops.Append(SumPostOp{2}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{}), IsOk());
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    ExpectProduct({Plain(c.src), Plain(c.weights), BiasOf(c), Plain(c.dst)}, attributes);
    ExpectProduct({Plain(c.src), Transposed(c.weights), BiasOf(c), Plain(c.dst)}, attributes);
  }
}

TEST_P(MatmulTest, PartsOfWiderTensors) {
  const auto part = [](const Dims& dims) {
    Dims whole = dims, offsets(dims.size(), 0);
    whole.back() += 3;
    offsets.back() = 2;
    return *Plain(whole).SubMemory(dims, offsets);
  };
  ExpectProduct({part({13, 40}), part({40, 60}), Plain({1, 60}), part({13, 60})});
  ExpectProduct({part({40, 40}), part({40, 60}), Plain({1, 60}), part({40, 60})});
  ExpectProduct({part({13, 140}), part({140, 60}), Plain({1, 60}), part({13, 60})});
  const MemoryDesc columns = *part({60, 140}).Permuted({1, 0});
  ExpectProduct({part({13, 140}), columns, Plain({1, 60}), part({13, 60})});
}

// One row of src gives the same bits whatever the other rows, and one column of weights whatever
// the other columns.
TEST_P(MatmulTest, RowsAndColumnsDoNotDependOnEachOther) {
  constexpr int64_t kRows = 140, kColumns = 70;
  // Not those that run another row, which one column may change, nor those of planes.
  const bool takes_columns =
      !GetParam().traits.runs_another && !GetParam().isa.Includes(cpu::Isa::kAmx);
  for (const auto& [k, kind] : {std::pair{37, PropKind::kForwardInference},
                                {200, PropKind::kForwardInference},
                                {200, PropKind::kForwardTraining}}) {
    const auto src = RandomFloats(kRows * k, 1), weights = RandomFloats(k * kColumns, 2);
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(absl::StrCat(PropKindName(kind), ", k ", k, transposed ? ", transposed" : ""));
      const auto multiply = [&](int64_t row, int64_t m, int64_t column, int64_t n) {
        Operands part{{src.begin() + row * k, src.begin() + (row + m) * k}, {}, {}, {}};
        part.before.resize(m * n);
        for (int64_t i = 0; i < k; ++i) {
          const auto first = weights.begin() + i * kColumns + column;
          part.weights.insert(part.weights.end(), first, first + n);
        }
        const Dims dims = {k, n};
        MatmulDesc desc{
            Plain({m, k}), transposed ? Transposed(dims) : Plain(dims), {}, Plain({m, n})};
        desc.prop_kind = kind;
        return Multiply(desc, part);
      };
      const auto all = multiply(0, kRows, 0, kColumns);
      ASSERT_TRUE(all);
      const auto expect_part = [&](int64_t row, int64_t m, int64_t column, int64_t n) {
        const auto some = multiply(row, m, column, n);
        for (int64_t i = 0; some && i < m * n; ++i) {
          EXPECT_EQ(BitsOf({(*some)[i]}),
                    BitsOf({(*all)[(row + i / n) * kColumns + column + i % n]}))
              << "row " << row << " of " << m << ", column " << column << " of " << n;
        }
        return some.has_value();
      };
      for (const int64_t row : {0, 7, 135}) {
        for (const int64_t m : {1, 2, 3, 5}) {
          // A single row has no other layout: the row that would run inside takes it first.
          if (m == 1 && GetParam().traits.runs_another) continue;
          EXPECT_TRUE(expect_part(row, m, 0, kColumns));
          if (takes_columns) expect_part(row, m, row % 50, 1 + row % 20);
        }
      }
    }
  }
}

// The same with an infinity in another row; and an infinite weight makes a column what it makes it
// in f32.
TEST_P(MatmulTest, InfinitiesStayWhereTheyBelong) {
  const MatmulDesc desc{Plain({34, 40}), Plain({40, 37}), {}, Plain({34, 37})};
  Operands operands = Random(desc);
  const auto before = Multiply(desc, operands);
  ASSERT_TRUE(before);
  operands.src[33 * 40 + 39] = INFINITY;
  const auto after = Multiply(desc, operands);
  for (int i = 0; i < 33 * 37; ++i) ASSERT_EQ((*after)[i], (*before)[i]);
  for (int n = 0; n < 37; ++n)
    EXPECT_EQ((*after)[33 * 37 + n], operands.weights[39 * 37 + n] > 0 ? INFINITY : -INFINITY);
  operands.src[33 * 40 + 39] = 1;
  operands.weights[2 * 37 + 36] = -INFINITY;
  const auto column = Multiply(desc, operands);
  for (int m = 0; m < 34; ++m) {
    EXPECT_EQ((*column)[m * 37 + 36], operands.src[m * 40 + 2] > 0 ? -INFINITY : INFINITY);
    EXPECT_TRUE(std::isfinite((*column)[m * 37]));
  }
}

TEST_P(MatmulTest, AnyIsRowMajor) {
  if (GetParam().traits.runs_another) GTEST_SKIP() << "is for layouts that are named";
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  const auto primitive = Create({any({3, 40}), any({40, 20}), any({1, 20}), any({3, 20})});
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Plain({3, 20}));
}

// Products of elements over the whole range of their type, whose sums wrap around.
class TypedMatmulTest : public MatmulTest {
 protected:
  template <typename T>
  void ExpectWrappedProduct(DataType type, const Case& c) {
    const MatmulDesc desc{Plain(c.src, type), Plain(c.weights, type), {}, Plain(c.dst, type)};
    const auto primitive = Create(desc);
    if (!primitive) return;
    SCOPED_TRACE(absl::StrCat(c.why, " of ", DataTypeName(type)));
    const std::vector<T> src = Any<T>(desc.src, 1), weights = Any<T>(desc.weights, 2);
    const Bytes from = Pack(desc.src, src), by = Pack(desc.weights, weights);
    const Inputs inputs = {{kArgSrc, &from}, {kArgWeights, &by}};
    const std::vector<T> got =
        Unpack<T>(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
    std::vector<T> expected;
    const int last = desc.dst.rank() - 1;
    const BroadcastOffsets src_at(desc.src), weights_at(desc.weights);
    ForEachIndex(c.dst, [&](const Dims& index) {
      uint64_t sum = 0;
      Dims row = index, column = index;
      for (int64_t k = 0; k < c.src[last]; ++k) {
        row[last] = column[last - 1] = k;
        sum += static_cast<uint64_t>(src[src_at.Offset(row)]) *
               static_cast<uint64_t>(weights[weights_at.Offset(column)]);
      }
      expected.push_back(static_cast<T>(sum));
    });
    EXPECT_EQ(got, expected);
  }

 private:
  template <typename T>
  static std::vector<T> Any(const MemoryDesc& desc, uint64_t seed) {
    testing::Random random(seed);
    std::vector<T> elements(desc.ElementCount());
    for (T& element : elements) element = static_cast<T>(random.Next());
    return elements;
  }
};

TEST_P(TypedMatmulTest, SumsWrapAround) {
  for (const Case& c : Cases()) {
    ExpectWrappedProduct<int32_t>(DataType::kS32, c);
    ExpectWrappedProduct<uint32_t>(DataType::kU32, c);
    ExpectWrappedProduct<int64_t>(DataType::kS64, c);
    ExpectWrappedProduct<uint64_t>(DataType::kU64, c);
  }
}

TEST_P(TypedMatmulTest, SumsOfNarrowTypesWrapAround) {
  for (const Case& c : Cases()) {
    ExpectWrappedProduct<int16_t>(DataType::kS16, c);
    ExpectWrappedProduct<uint16_t>(DataType::kU16, c);
  }
}

// The rows for f32 alone, or those for the wider types; the reference is among both.
std::vector<Implementation<MatmulDesc>> Rows(bool typed) {
  std::vector<Implementation<MatmulDesc>> rows;
  for (const auto& row : MatmulImplementations()) {
    if (row.traits.is_integer || !row.traits.propagations.Has(PropKind::kForwardInference))
      continue;
    if (row.traits.is_reference || (row.name == "matmul/typed_rows") == typed) rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, MatmulTest, ::testing::ValuesIn(Rows(false)),
                         RowName<Implementation<MatmulDesc>>);
INSTANTIATE_TEST_SUITE_P(AllImplementations, TypedMatmulTest, ::testing::ValuesIn(Rows(true)),
                         RowName<Implementation<MatmulDesc>>);

TEST(MatmulErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateMatmul);
  const auto of = [&](const Dims& src, const Dims& weights, const Dims& dst) {
    return status({Plain(src), Plain(weights), {}, Plain(dst)});
  };
  EXPECT_THAT(of({2, 3}, {4, 5}, {2, 5}), StatusIs(kInvalid, "differ in K"));
  EXPECT_THAT(of({2, 3}, {3, 5}, {3, 5}), StatusIs(kInvalid, "differ in M"));
  EXPECT_THAT(of({2, 3}, {3, 5}, {2, 4}), StatusIs(kInvalid, "differ in N"));
  EXPECT_THAT(of({2, 2, 3}, {3, 3, 5}, {3, 2, 5}), StatusIs(kInvalid, "dimension 0"));
  EXPECT_THAT(of({2, 3}, {1, 3, 5}, {2, 5}), StatusIs(kInvalid, "rank"));
  EXPECT_THAT(status({Plain({2, 3}), Plain({3, 5}), Plain({1, 4}), Plain({2, 5})}),
              StatusIs(kInvalid, "bias"));
  EXPECT_THAT(
      status({Plain({2, 3}, DataType::kS16), Plain({3, 5}, DataType::kS8), {}, Plain({2, 5})}),
      StatusIs(kUnimplemented, "f32"));
}

// Six products of weights that fill a cache lose to the memory that they are read from.
TEST(MatmulPlanesTest, LargeMatricesOfExactProductsAreNotSplit) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto name_of = [](int64_t k, int64_t n) {
    const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
    const auto primitive =
        CreateMatmul(MatmulDesc{any({64, k}), any({k, n}), {}, any({64, n})}, {}, {});
    EXPECT_THAT(primitive, IsOk());
    return std::string((*primitive)->name());
  };
  EXPECT_EQ(name_of(64, 64), "matmul/amx_f32_split6_planes");
  EXPECT_EQ(name_of(2048, 1024), "matmul/avx512_f32");
}

}  // namespace
}  // namespace tilewire::testing
