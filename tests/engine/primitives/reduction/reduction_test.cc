// SPDX-License-Identifier: Apache-2.0
//
// Every row of reduction's table against the formula in double precision.
#include "engine/primitives/reduction/reduction.h"

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Algorithm = ReductionAlgorithm;

struct Function {
  const char* why;
  Algorithm algorithm;
  float p = 2, eps = 0;
};

constexpr Function kFunctions[] = {
    {"max", Algorithm::kMax},
    {"min", Algorithm::kMin},
    {"sum", Algorithm::kSum},
    {"mul", Algorithm::kMul},
    {"mean", Algorithm::kMean},
    {"the length", Algorithm::kNormLpSum, 2, 0.25f},
    {"the sum of magnitudes, at least eps", Algorithm::kNormLpMax, 1, 2},
    {"a fractional p, without the root", Algorithm::kNormLpPowerPSum, 1.5f, 0.5f},
    {"a fractional p, with the root", Algorithm::kNormLpMax, 2.5f, 1e-3f},
    {"squares, at least eps", Algorithm::kNormLpPowerPMax, 2, 1e-3f},
};

struct ExpectedWithin {
  double value = 0, tolerance = 0;
};

// A sum of n terms is off by n roundings of the sum of their magnitudes, a product by n of itself;
// a power of p multiplies by p and adds four.
ExpectedWithin Formula(const ReductionDesc& desc, const std::vector<float>& terms) {
  constexpr double kUlp = 0x1p-24;
  const double n = static_cast<double>(terms.size());
  double largest = terms[0], smallest = terms[0], sum = 0, product = 1, magnitudes = 0, powers = 0;
  for (double x : terms) {
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
    sum += x;
    product *= x;
    magnitudes += std::abs(x);
    powers += std::pow(std::abs(x), desc.p);
  }
  switch (desc.algorithm) {
    case Algorithm::kMax:
      return {largest, 0};
    case Algorithm::kMin:
      return {smallest, 0};
    case Algorithm::kSum:
      return {sum, n * kUlp * magnitudes};
    case Algorithm::kMul:
      return {product, n * kUlp * std::abs(product) + 0x1p-125};  // denormals are flushed
    case Algorithm::kMean:
      return {sum / n, (n + 2) * kUlp * magnitudes / n};
    default:
      break;
  }
  const bool adds =
      desc.algorithm == Algorithm::kNormLpSum || desc.algorithm == Algorithm::kNormLpPowerPSum;
  double result = adds ? powers + desc.eps : std::max<double>(powers, desc.eps);
  if (desc.algorithm == Algorithm::kNormLpMax || desc.algorithm == Algorithm::kNormLpSum) {
    result = std::pow(result, 1.0 / desc.p);
  }
  return {result, (n + desc.p + 8) * kUlp * result};
}

class ReductionTest : public RowTest<ReductionDesc> {
 protected:
  ReductionTest() : RowTest(CreateReduction) {}

  std::optional<std::vector<float>> Reduce(const ReductionDesc& desc,
                                           const std::vector<float>& values) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(desc.src, values);
    return Unpack<float>(
        desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(desc.dst, 7)));
  }

  void ExpectFormula(const ReductionDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString(), " ",
                              static_cast<int>(desc.algorithm)));
    const std::vector<float> values = RandomFloats(desc.src.ElementCount(), 1, 0.5f, 1.5f);
    const auto result = Reduce(desc, values);
    if (!result) return;
    const BroadcastOffsets plain(Plain(desc.dst.dims()));
    std::vector<std::vector<float>> terms(result->size());
    size_t i = 0;
    ForEachIndex(desc.src.dims(), [&](const Dims& index) {
      terms[plain.Offset(index)].push_back(values[i]);
      ++i;
    });
    for (size_t r = 0; r < result->size(); ++r) {
      const ExpectedWithin expected = Formula(desc, terms[r]);
      ASSERT_NEAR((*result)[r], expected.value, expected.tolerance) << "element " << r;
    }
  }
};

// Every set of dimensions, as the bits of a number.
Dims Reduced(const Dims& dims, unsigned set) {
  Dims reduced = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (set >> d & 1) reduced[d] = 1;
  }
  return reduced;
}

TEST_P(ReductionTest, EverySetOfDimensionsOfEveryLayout) {
  for (const Dims& dims : {Dims{2, 17, 5}, Dims{2, 24, 3, 4}, Dims{1, 33, 2, 1, 3}, Dims{3, 40}}) {
    for (unsigned set = 0; set < 1u << dims.size(); ++set) {
      const Dims reduced = Reduced(dims, set);
      const std::vector<Layout> sources = LayoutsOf(dims), destinations = LayoutsOf(reduced);
      for (size_t i = 0; i < sources.size(); ++i) {
        SCOPED_TRACE(sources[i].why);
        for (Algorithm algorithm : {Algorithm::kSum, Algorithm::kMin}) {
          ExpectFormula({algorithm, sources[i].desc, destinations[i].desc});
          ExpectFormula({algorithm, sources[i].desc, Plain(reduced)});
        }
      }
    }
  }
}

// Equal terms, whose rounding errors do not cancel: along a line, over columns, and over both.
TEST_P(ReductionTest, LongSumsAreAsExactAsShortOnes) {
  for (const auto& [dims, set] : std::vector<std::pair<Dims, unsigned>>{
           {{1, 3'000'017}, 2u},         // one line
           {{1, 100'001, 17}, 2u},       // columns
           {{50'000, 3, 7}, 5u},         // lines of a few elements, far apart
           {{300, 2, 1600}, 5u},         // lines of some length
           {{10'000, 2, 20, 5}, 5u}}) {  // columns in two loops
    const MemoryDesc src = Plain(dims), dst = Plain(Reduced(dims, set));
    SCOPED_TRACE(src.ToString());
    const std::vector<float> terms(src.ElementCount(), 0.1f);
    const auto n = static_cast<double>(src.ElementCount() / dst.ElementCount());
    for (const auto& [algorithm, expected] : std::vector<std::pair<Algorithm, double>>{
             {Algorithm::kSum, n * 0.1f}, {Algorithm::kMean, 0.1f}}) {
      const auto result = Reduce({algorithm, src, dst}, terms);
      if (!result) continue;
      for (const float one : *result) ASSERT_NEAR(one, expected, 3e-5 * expected);
    }
  }
}

TEST_P(ReductionTest, EveryFunction) {
  const Dims dims = {2, 37, 6, 11};
  for (const Function& function : kFunctions) {
    SCOPED_TRACE(function.why);
    for (unsigned set : {1u, 2u, 8u, 12u, 13u, 14u, 15u}) {
      for (const char* tag : {"nchw", "nhwc", "nChw8c", "nChw16c"}) {
        ReductionDesc desc{function.algorithm, Tagged(dims, tag), Tagged(Reduced(dims, set), tag),
                           function.p, function.eps};
        ExpectFormula(desc);
        desc.dst = Plain(Reduced(dims, set));
        ExpectFormula(desc);
      }
    }
    for (int64_t n : {1, 7, 8, 16, 100, 5000}) {
      ExpectFormula({function.algorithm, Plain({n}), Plain({1}), function.p, function.eps});
      ExpectFormula({function.algorithm, Plain({3, n}), Plain({1, n}), function.p, function.eps});
    }
  }
}

TEST_P(ReductionTest, ExtremaKeepNan) {
  std::vector<float> values = RandomFloats(4 * 70, 1);
  values[70 + 3] = values[2 * 70 + 69] = std::numeric_limits<float>::quiet_NaN();
  for (Algorithm algorithm : {Algorithm::kMax, Algorithm::kMin}) {
    const auto result = Reduce({algorithm, Plain({4, 70}), Plain({4, 1})}, values);
    ASSERT_TRUE(result);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(std::isnan((*result)[i]), i == 1 || i == 2) << i;
    const auto columns = Reduce({algorithm, Plain({4, 70}), Plain({1, 70})}, values);
    ASSERT_TRUE(columns);
    for (int i = 0; i < 70; ++i) EXPECT_EQ(std::isnan((*columns)[i]), i == 3 || i == 69) << i;
  }
}

TEST_P(ReductionTest, AnImageDoesNotDependOnTheBatch) {
  for (const char* tag : {"nchw", "nhwc", "nChw16c"}) {
    const auto values = RandomFloats(5 * 19 * 49, 1);
    const auto all =
        Reduce({Algorithm::kMean, Tagged({5, 19, 7, 7}, tag), Tagged({5, 19, 1, 1}, tag)}, values);
    if (!all) continue;
    for (int n = 0; n < 5; ++n) {
      const auto one =
          Reduce({Algorithm::kMean, Tagged({1, 19, 7, 7}, tag), Tagged({1, 19, 1, 1}, tag)},
                 {values.begin() + n * 931, values.begin() + (n + 1) * 931});
      EXPECT_EQ(BitsOf(*one), BitsOf({all->begin() + n * 19, all->begin() + (n + 1) * 19}));
    }
  }
}

TEST_P(ReductionTest, AnyAndTensorsWithoutElements) {
  const auto primitive =
      Create({Algorithm::kSum, Plain({2, 3}), *MemoryDesc::CreateAny({2, 1}, DataType::kF32)});
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Plain({2, 1}));
  ExpectFormula({Algorithm::kSum, Plain({0, 3}), Plain({0, 1})});
}

TEST(ReductionOfNothingTest, GivesTheNeutralElement) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [algorithm, expected] : {std::pair{Algorithm::kSum, 0.0f},
                                            {Algorithm::kMul, 1.0f},
                                            {Algorithm::kMax, -infinity},
                                            {Algorithm::kMin, infinity},
                                            {Algorithm::kMean, std::nanf("")}}) {
    const MemoryDesc src = Plain({2, 0, 3}), dst = Plain({2, 1, 3});
    const ReductionDesc desc{algorithm, src, dst};
    std::vector<absl::string_view> takers = {""};  // the best one
    for (const Implementation<ReductionDesc>& row :
         RowsThatRun({PropKind::kForwardInference}, ReductionImplementations())) {
      if (cpu::Supports(row.isa) && row.resolve({desc, {}, row}).ok()) takers.push_back(row.name);
    }
    EXPECT_GE(takers.size(), 3) << "the reference and another";
    for (absl::string_view only : takers) {
      const auto primitive = CreateReduction(desc, {}, {.only = only});
      ASSERT_THAT(primitive, IsOk());
      const Bytes none(1);
      for (float element : Unpack<float>(dst, Execute(**primitive, {{kArgSrc, &none}}, kArgDst,
                                                      Garbage(dst, 7), threading::Team::Serial())))
        EXPECT_TRUE(element == expected || (std::isnan(element) && std::isnan(expected))) << only;
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Reduction);

// Four bytes may stand for any number of elements; a run on them can be stopped.
TEST(ReductionErrorsTest, ManyElementsThatShareMemoryAreNotOneCallOfGeneratedCode) {
  for (const int64_t rows : {1 << 10, 1 << 20}) {
    const MemoryDesc src =
        MemoryDesc::CreateStrided({rows, 1 << 10}, DataType::kF32, {0, 1}).value();
    const ReductionDesc desc{Algorithm::kSum, src, Plain({1, 1})};
    for (const Implementation<ReductionDesc>& row :
         RowsThatRun({PropKind::kForwardInference}, ReductionImplementations())) {
      const std::string refusal(row.resolve({desc, {}, row}).status().message());
      const bool refuses = !row.traits.is_reference && rows == 1 << 20;
      EXPECT_EQ(absl::StrContains(refusal, "that share memory"), refuses) << row.name << refusal;
    }
  }
}

TEST(ReductionErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc md = Plain({2, 3});
  const auto status = StatusOfCreating(CreateReduction);
  EXPECT_THAT(status({Algorithm::kSum, md, Plain({2, 2})}), StatusIs(kInvalid, "does not reduce"));
  EXPECT_THAT(status({Algorithm::kSum, md, Plain({2})}), StatusIs(kInvalid, "does not reduce"));
  EXPECT_THAT(status({Algorithm::kNormLpSum, md, md, 0.5f}), StatusIs(kInvalid, "p 0.5"));
  EXPECT_THAT(status({static_cast<Algorithm>(9), md, md}), StatusIs(kInvalid, "algorithm 9"));
  const MemoryDesc bytes = Plain({2, 3}, DataType::kU8);
  EXPECT_THAT(status({Algorithm::kSum, bytes, bytes}), StatusIs(kUnimplemented, "u8"));
  EXPECT_THAT(status({Algorithm::kSum, md, md}), IsOk());
}

}  // namespace
}  // namespace tilewire::testing
