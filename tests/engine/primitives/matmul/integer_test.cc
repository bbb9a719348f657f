// SPDX-License-Identifier: Apache-2.0
//
// Products of u8 and s8: sums against 64-bit integers, and every row against the reference, the
// same bytes, whatever the shape, the types, the zero points, the chain and the strides.
#include <algorithm>
#include <cmath>

#include "engine/primitives/matmul/matmul.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_test.h"
#include "tests/support/avx_vnni/dot_product_emulator.h"

namespace tilewire::testing {
namespace {

using enum DataType;

struct IntegerCase {
  const char* why;
  Dims src, weights, dst;
};

const std::vector<IntegerCase>& IntegerCases() {
  static const auto* const cases = new std::vector<IntegerCase>{
      {"one element", {1, 1}, {1, 1}, {1, 1}},
      {"below every tile", {3, 5}, {5, 7}, {3, 7}},
      {"whole quads, src read in place", {12, 64}, {64, 64}, {12, 64}},
      {"one whole matrix tile", {32, 64}, {64, 32}, {32, 32}},
      {"tails in every dimension", {13, 67}, {67, 101}, {13, 101}},
      {"rows that end in each half of matrix tiles", {55, 128}, {128, 33}, {55, 33}},
      {"more rows than a task takes", {203, 36}, {36, 20}, {203, 20}},
      {"a vector times a matrix", {1, 300}, {300, 50}, {1, 50}},
      {"a matrix times a vector", {50, 30}, {30, 1}, {50, 1}},
      {"an outer product", {17, 1}, {1, 49}, {17, 49}},
      {"batched", {3, 9, 40}, {3, 40, 18}, {3, 9, 18}},
      {"batched, one weights", {3, 40, 7}, {1, 7, 52}, {3, 40, 52}},
      {"batched, one src", {1, 14, 35}, {3, 35, 18}, {3, 14, 18}},
      {"two batch dimensions, broadcast crosswise", {2, 1, 9, 36}, {1, 3, 36, 20}, {2, 3, 9, 20}},
      {"attention's scores", {2, 2, 37, 32}, {2, 2, 32, 37}, {2, 2, 37, 37}},
      {"attention's context", {2, 2, 37, 37}, {2, 2, 37, 32}, {2, 2, 37, 32}},
      {"many products", {9, 1027}, {1027, 17}, {9, 17}},
      {"no row", {0, 4}, {4, 3}, {0, 3}},
      {"no product: zeros", {3, 0}, {0, 5}, {3, 5}},
  };
  return *cases;
}

struct Types {
  DataType src, weights;
};
constexpr Types kAllTypes[] = {{kU8, kS8}, {kU8, kU8}, {kS8, kS8}, {kS8, kU8}};

int32_t Clamped(DataType type, int32_t zero) {
  return type == kU8 ? zero : std::min(zero, 255) - 128;
}

Dims Swapped(Dims dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

// The last two dimensions exchanged in memory, as those of keys.
MemoryDesc Turned(const Dims& dims, DataType type) {
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) order.push_back(d);
  std::swap(order[dims.size() - 1], order[dims.size() - 2]);
  return *Plain(Swapped(dims), type).Permuted(order);
}

// The first columns of a wider tensor, as the parts of a tensor that holds queries, keys, values.
MemoryDesc PartOf(const Dims& dims, DataType type) {
  Dims whole = dims, offsets(dims.size(), 0);
  whole.back() += 7;
  offsets.back() = 2;
  return *Plain(whole, type).SubMemory(dims, offsets);
}

MatmulDesc DescOf(const IntegerCase& c, const Types& types, DataType dst, int32_t src_zero = 0,
                  int32_t weights_zero = 0) {
  return {Plain(c.src, types.src),      Plain(c.weights, types.weights),     {}, Plain(c.dst, dst),
          Clamped(types.src, src_zero), Clamped(types.weights, weights_zero)};
}

int64_t ElementOf(DataType type, uint8_t byte) {
  return type == kS8 ? static_cast<int8_t>(byte) : byte;
}

class IntegerMatmulTest : public RowTest<MatmulDesc> {
 protected:
  IntegerMatmulTest() : RowTest(CreateMatmul) {}

  // The bytes of a tensor, whatever lies between its elements included.
  static Bytes Any(const MemoryDesc& desc, uint64_t seed) {
    Random random(seed);
    std::vector<uint8_t> elements(desc.ElementCount());
    for (uint8_t& element : elements) element = static_cast<uint8_t>(random.Next() >> 56);
    return Pack(desc, elements);
  }

  struct Operands {
    Bytes src, weights, before;
  };
  static Operands AnyOperands(const MatmulDesc& desc) {
    return {Any(desc.src, 1), Any(desc.weights, 2), RandomTensor(desc.dst, 3)};
  }

  std::optional<Bytes> Multiply(const MatmulDesc& desc, const Operands& operands,
                                const Attributes& attributes = {}) {
    const auto primitive = Create(desc, attributes);
    if (!primitive) return std::nullopt;
    const Inputs inputs = {{kArgSrc, &operands.src}, {kArgWeights, &operands.weights}};
    return ExecuteAllWays(*primitive, inputs, kArgDst, operands.before);
  }

  // The sums themselves, against sums of 64 bits.
  void ExpectSums(const MatmulDesc& desc, const Operands& operands) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " x ", desc.weights.ToString(), " zero points ",
                              desc.src_zero_point, ", ", desc.weights_zero_point));
    const auto bytes = Multiply(desc, operands);
    if (!bytes) return;
    const BroadcastOffsets src(desc.src), weights(desc.weights);
    const DataType src_type = desc.src.data_type(), weights_type = desc.weights.data_type();
    std::vector<int32_t> expected;
    const int last = desc.dst.rank() - 1;
    ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
      int64_t sum = 0;
      Dims row = index, column = index;
      for (int64_t k = 0; k < desc.src.dim(last); ++k) {
        row[last] = column[last - 1] = k;
        sum += (ElementOf(src_type, operands.src[src.Offset(row)]) - desc.src_zero_point) *
               (ElementOf(weights_type, operands.weights[weights.Offset(column)]) -
                desc.weights_zero_point);
      }
      expected.push_back(static_cast<int32_t>(sum));
    });
    EXPECT_EQ(Unpack<int32_t>(desc.dst, *bytes), expected);
  }

  // `more` inputs beside the operands.
  void ExpectSameAsReference(const MatmulDesc& desc, const Attributes& attributes,
                             const Inputs& more = {}) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " x ", desc.weights.ToString(), " -> ",
                              desc.dst.ToString(), " ", attributes.ToString()));
    const Operands operands = AnyOperands(desc);
    Inputs inputs = {{kArgSrc, &operands.src}, {kArgWeights, &operands.weights}};
    inputs.insert(inputs.end(), more.begin(), more.end());
    const auto primitive = Create(desc, attributes);
    if (!primitive) return;
    const auto reference = CreateMatmul(desc, attributes, {.reference_only = true});
    ASSERT_THAT(reference, IsOk());
    EXPECT_TRUE(ExecuteAllWays(*primitive, inputs, kArgDst, operands.before) ==
                Execute(**reference, inputs, kArgDst, operands.before, threading::Team::Serial()));
  }
};

TEST_P(IntegerMatmulTest, SumsOfEveryShapeAndType) {
  for (const IntegerCase& c : IntegerCases()) {
    SCOPED_TRACE(c.why);
    for (const Types& types : kAllTypes) {
      for (const auto& [src_zero, weights_zero] : {std::pair{0, 0}, {113, 97}}) {
        const MatmulDesc desc = DescOf(c, types, kS32, src_zero, weights_zero);
        ExpectSums(desc, AnyOperands(desc));
      }
    }
  }
}

TEST_P(IntegerMatmulTest, SumsOfEveryZeroPoint) {
  const IntegerCase c = {"", {2, 9, 38}, {2, 38, 19}, {2, 9, 19}};
  for (const Types& types : kAllTypes) {
    for (int32_t src_zero : {0, 1, 127, 128, 255}) {
      for (int32_t weights_zero : {0, 1, 127, 128, 255}) {
        const MatmulDesc desc = DescOf(c, types, kS32, src_zero, weights_zero);
        ExpectSums(desc, AnyOperands(desc));
      }
    }
  }
}

TEST_P(IntegerMatmulTest, RangesOfRunTime) {
  for (const IntegerCase& c : IntegerCases()) {
    for (const auto& [left, right] :
         {std::pair<std::vector<float>, std::vector<float>>{{0.5f, 0}, {0.25f, 128}},
          {{0.37f, 131}, {0.011f, 7}},
          {{1, 255}, {1, 0}}}) {
      MatmulDesc desc{Plain(c.src, kU8), Plain(c.weights, kU8), {}, Plain(c.dst)};
      desc.range = desc.weights_range = Plain({2});
      SCOPED_TRACE(absl::StrCat(c.why, " ", left[1], " ", right[1]));
      Attributes attributes;
      attributes.output_scales.scales = {1.7f};
      const Bytes src = Pack(desc.range, left), weights = Pack(desc.weights_range, right);
      ExpectSameAsReference(desc, attributes,
                            {{kArgQuantizationRange, &src}, {kArgWeightsRange, &weights}});
    }
  }
}

TEST_P(IntegerMatmulTest, OperandsOfAnyStrides) {
  for (const IntegerCase& c : IntegerCases()) {
    SCOPED_TRACE(c.why);
    for (const Types& types : {kAllTypes[1], kAllTypes[2]}) {
      MatmulDesc desc = DescOf(c, types, kS32, 3, 250);
      const MemoryDesc src = desc.src;
      desc.weights = Turned(c.weights, types.weights);
      ExpectSums(desc, AnyOperands(desc));
      desc.src = Turned(c.src, types.src);
      ExpectSums(desc, AnyOperands(desc));
      desc.src = PartOf(c.src, types.src);
      desc.weights = PartOf(c.weights, types.weights);
      desc.dst = PartOf(c.dst, kS32);
      ExpectSums(desc, AnyOperands(desc));
    }
  }
}

// The largest and smallest products there are, up to the bound of the contract; beyond it sums wrap
// around, in every row alike.
TEST_P(IntegerMatmulTest, ExtremeProductsAreExact) {
  if (GetParam().isa == cpu::Isa::kAvx2Vnni && DotProductsAreEmulated())
    GTEST_SKIP() << "a product that software computes takes microseconds";
  for (const Types& types : kAllTypes) {
    for (int64_t products : {33025, 70000}) {
      const IntegerCase c = {"", {8, products}, {products, 2}, {8, 2}};
      for (int32_t zero : {0, 255}) {
        const MatmulDesc desc = DescOf(c, types, kS32, zero, 255 - zero);
        Operands operands = AnyOperands(desc);
        const auto extreme = [](DataType type, bool largest) {
          return static_cast<uint8_t>(type == kU8 ? (largest ? 255 : 0) : (largest ? 127 : -128));
        };
        std::fill(operands.src.begin(), operands.src.end(), extreme(types.src, zero == 0));
        std::fill(operands.weights.begin(), operands.weights.end(),
                  extreme(types.weights, zero != 0));
        ExpectSums(desc, operands);
      }
    }
  }
}

TEST_P(IntegerMatmulTest, EveryTypeAndChain) {
  for (const IntegerCase& c : {IntegerCase{"", {13, 40}, {40, 70}, {13, 70}},
                               IntegerCase{"", {2, 33, 65}, {2, 65, 19}, {2, 33, 19}}}) {
    for (const Types& types : kAllTypes) {
      for (DataType dst : {kU8, kS8, kS32, kF32}) {
        for (const std::vector<PostOp>& chain : ExactChains()) {
          Attributes attributes;
          for (const PostOp& entry : chain) ASSERT_THAT(attributes.post_ops.Append(entry), IsOk());
          attributes.output_scales = SpreadingScales(c.src.back(), 1, false);
          ExpectSameAsReference(DescOf(c, types, dst, 120, 131), attributes);
        }
      }
    }
  }
}

TEST_P(IntegerMatmulTest, ResultsBetweenOtherBytes) {
  for (DataType dst : {kU8, kS8, kF32}) {
    for (const IntegerCase& c : IntegerCases()) {
      SCOPED_TRACE(c.why);
      MatmulDesc desc = DescOf(c, {kU8, kU8}, dst, 7, 129);
      desc.dst = PartOf(c.dst, dst);
      Attributes attributes;
      ASSERT_THAT(attributes.post_ops.Append(SumPostOp{.scale = 0.5f}), IsOk());
      attributes.output_scales.scales = {0.001f};
      ExpectSameAsReference(desc, attributes);
    }
  }
}

std::vector<Implementation<MatmulDesc>> RowsOfIntegers() {
  auto rows = IntegerRows(MatmulImplementations());
  for (const Implementation<MatmulDesc>& row : FloatRows(MatmulImplementations())) {
    if (row.traits.is_reference) rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Rows, IntegerMatmulTest, ::testing::ValuesIn(RowsOfIntegers()),
                         RowName<Implementation<MatmulDesc>>);

TEST(IntegerMatmulRowsTest, MatrixTilesAreTakenByProductsThatFillThem) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto name_of = [](int64_t rows, int64_t products) {
    const IntegerCase c = {"", {rows, products}, {products, 32}, {rows, 32}};
    const auto primitive = CreateMatmul(DescOf(c, {kU8, kU8}, kU8), {}, {});
    return primitive.ok() ? (*primitive)->info().name : primitive.status().ToString();
  };
  EXPECT_EQ(name_of(8, 32), "matmul/amx_u8s8");
  EXPECT_EQ(name_of(7, 32), "matmul/avx512_vnni_u8s8");
  EXPECT_EQ(name_of(8, 31), "matmul/avx512_vnni_u8s8");
}

TEST(IntegerMatmulErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateMatmul);
  const IntegerCase c = {"", {2, 5}, {5, 3}, {2, 3}};
  const MatmulDesc good = DescOf(c, {kU8, kU8}, kU8, 255, 255);
  EXPECT_THAT(status(good), IsOk());
  MatmulDesc desc = good;
  desc.src_zero_point = 256;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "zero point 256 of u8"));
  desc = good;
  desc.weights_zero_point = -1;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "zero point -1 of u8"));
  desc = good;
  desc.weights = Plain(c.weights, kS8);
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "zero point 255 of s8"));
  desc = good;
  desc.weights = Plain(c.weights, kF32);
  desc.weights_zero_point = 0;
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "weights of f32"));
  desc = good;
  desc.dst = Plain(c.dst, kF16);
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "dst of f16"));
  desc = good;
  desc.bias = Plain({1, 3}, kF32);
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "a bias of integers"));
  Attributes attributes;
  attributes.output_scales = {2, {1, 2, 3}};
  EXPECT_THAT(status(good, attributes), StatusIs(kUnimplemented, "more than one scale"));
  attributes.output_scales = {2, {1, 2}};
  EXPECT_THAT(status(good, attributes), StatusIs(kInvalid, "2 output scales"));
  desc = good;
  desc.range = Plain({2});
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "expected f32 [2], and both"));
  desc.weights_range = Plain({2});
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "without known zero points"));
  const IntegerCase of_reals = {"", {2, 5}, {5, 3}, {2, 3}};
  MatmulDesc reals{Plain(of_reals.src), Plain(of_reals.weights), {}, Plain(of_reals.dst)};
  reals.src_zero_point = 1;
  EXPECT_THAT(status(reals), StatusIs(kInvalid, "zero point 1 of f32"));
}

}  // namespace
}  // namespace tilewire::testing
