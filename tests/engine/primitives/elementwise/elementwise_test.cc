// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/elementwise/elementwise.h"

#include <cmath>
#include <limits>

#include "engine/functions/integer_functions.h"
#include "engine/memory/element_types.h"
#include "tests/engine/primitives/row_test.h"
#include "tests/support/function_cases.h"

namespace tilewire::testing {
namespace {

using Function = functions::Elementwise::Function;

class ElementwiseTest : public RowTest<ElementwiseDesc> {
 protected:
  ElementwiseTest() : RowTest(CreateElementwise) {}

  // Compares with `formula` of the numbers x[0], x[1], x[2]: the same bits, or as near as the case
  // allows.
  template <typename Formula>
  void ExpectFunction(const ElementwiseDesc& desc, Formula formula, const FunctionCase* one = {}) {
    SCOPED_TRACE(absl::StrCat("function ", static_cast<int>(desc.function.function), ": ",
                              desc.srcs[0].ToString(), " ... -> ", desc.dst.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    std::vector<std::vector<float>> values;
    std::vector<Bytes> packed;
    for (size_t s = 0; s < desc.srcs.size(); ++s) {
      values.push_back(RandomFloats(desc.srcs[s].ElementCount(), s + 1, -3, 3));
      for (size_t i = 0; i < values[s].size(); i += 5) values[s][i] = std::round(values[s][i]);
      for (size_t i = 3; i < values[s].size(); i += 40) values[s][i] = std::nanf("");
      for (size_t i = 9 + s; i < values[s].size(); i += 30)
        values[s][i] = i % 4 < 2 ? HUGE_VALF : -HUGE_VALF;
      packed.push_back(Pack(desc.srcs[s], values[s]));
    }
    Inputs inputs;
    for (size_t s = 0; s < packed.size(); ++s)
      inputs.emplace_back(kArgMultipleSrc + static_cast<int>(s), &packed[s]);
    const std::vector<float> got =
        Unpack<float>(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
      float x[3] = {};
      for (size_t s = 0; s < desc.srcs.size(); ++s) {
        const MemoryDesc plain = Plain(desc.srcs[s].dims());
        Dims from = index;
        for (int d = 0; d < plain.rank(); ++d) from[d] = plain.dim(d) == 1 ? 0 : index[d];
        x[s] = values[s][plain.Offset(from)];
      }
      const float expected = formula(x);
      const double off = std::abs(static_cast<double>(got[i]) - expected);
      const bool is_close = one != nullptr && off <= AllowedUlps(*one, x[0]) * Ulp(expected);
      ASSERT_TRUE(BitsOf({got[i]}) == BitsOf({expected}) || is_close ||
                  (std::isnan(got[i]) && std::isnan(expected)))
          << "element " << i << ": " << got[i] << ", not " << expected << " of " << x[0];
      ++i;
    });
  }
};

// Functions whose formula is one operation; the conformance of all is tested with ONNX's.
TEST_P(ElementwiseTest, FormulasInEveryLayout) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      const MemoryDesc& md = layout.desc;
      ExpectFunction({{Function::kAdd}, {md, md}, md}, [](auto* x) { return x[0] + x[1]; });
      ExpectFunction({{Function::kDiv}, {md, md}, md}, [](auto* x) { return x[0] / x[1]; });
      ExpectFunction({{Function::kWhere}, {md, md, md}, md},
                     [](auto* x) { return x[0] != 0 ? x[1] : x[2]; });
      ExpectFunction({{Function::kReciprocal}, {md}, md}, [](auto* x) { return 1 / x[0]; });
    }
  }
}

TEST_P(ElementwiseTest, EveryFunction) {
  const MemoryDesc md = Plain({2, 17, 3, 4});
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    ExpectFunction(
        {one.op, {md}, md}, [&](const float* x) { return functions::Evaluate(one.op, x); }, &one);
  }
  for (int i = functions::kRealFunctionCount; i < functions::kFunctionCount; ++i) {
    const functions::Elementwise function{static_cast<Function>(i), 0.75f, 0.5f};
    if (functions::IsBitwise(function.function)) continue;
    const int arity = functions::ArityOf(function.function);
    ExpectFunction({function, std::vector<MemoryDesc>(arity, md), md},
                   [&](const float* x) { return functions::Evaluate(function, x); });
  }
}

TEST_P(ElementwiseTest, EveryBroadcastOfEitherSource) {
  const Dims dims = {2, 17, 3, 4};
  for (unsigned set = 0; set < 16; ++set) {
    Dims small = dims;
    for (int d = 0; d < 4; ++d) small[d] = set >> d & 1 ? 1 : dims[d];
    for (const char* tag : {"nchw", "nhwc", "nChw8c"}) {
      const MemoryDesc whole = Tagged(dims, tag);
      for (const MemoryDesc& other : {Plain(small), Tagged(small, tag)}) {
        ExpectFunction({{Function::kSub}, {whole, other}, whole},
                       [](auto* x) { return x[0] - x[1]; });
        ExpectFunction({{Function::kMul}, {other, whole}, whole},
                       [](auto* x) { return x[0] * x[1]; });
        ExpectFunction({{Function::kLess}, {other, other}, whole},
                       [](auto* x) { return x[0] < x[1] ? 1.0f : 0.0f; });
      }
    }
  }
}

TEST_P(ElementwiseTest, LayoutsThatDiffer) {
  const Dims dims = {2, 17, 3, 4};
  for (const Layout& a : LayoutsOf(dims)) {
    for (const Layout& b : LayoutsOf(dims)) {
      ExpectFunction({{Function::kMax}, {a.desc, b.desc}, b.desc},
                     [](auto* x) { return std::isnan(x[0]) || x[0] > x[1] ? x[0] : x[1]; });
    }
  }
}

TEST_P(ElementwiseTest, MoreThanOnePieceOfWork) {
  const MemoryDesc md = Plain({2, 40, 33, 31});
  ExpectFunction({{Function::kMul}, {md, Plain({1, 40, 1, 1})}, md},
                 [](auto* x) { return x[0] * x[1]; });
}

// Random integers of any size, every other one small, among them the ends of the type; or truth
// values.
template <typename T>
Bytes IntegersIn(const MemoryDesc& desc, uint64_t seed) {
  std::vector<T> numbers(desc.ElementCount());
  FillGarbage(reinterpret_cast<uint8_t*>(numbers.data()), numbers.size() * sizeof(T), seed);
  using Limits = std::numeric_limits<T>;
  const T ends[] = {Limits::min(), Limits::max(), static_cast<T>(-1), 0, 1};
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % 2 == 0) numbers[i] = static_cast<T>(numbers[i] % 5);
    if (i % 7 == 3) numbers[i] = ends[(i / 7 + seed) % 5];
  }
  return Pack(desc, numbers);
}
Bytes TruthIn(const MemoryDesc& desc, uint64_t seed) {
  std::vector<float> numbers = RandomFloats(desc.ElementCount(), seed, -1, 1);
  for (size_t i = 0; i < numbers.size(); i += 2) numbers[i] = 0;
  for (size_t i = 0; i < numbers.size(); i += 5) numbers[i] = i % 10 == 0 ? -0.0f : std::nanf("");
  return Pack(desc, numbers);
}

// Rows against the reference, on integers of each type.
class IntegerElementwiseTest : public ElementwiseTest {
 protected:
  static constexpr DataType kTypes[] = {DataType::kU8,  DataType::kS8,  DataType::kU16,
                                        DataType::kS16, DataType::kU32, DataType::kS32,
                                        DataType::kU64, DataType::kS64};

  void ExpectLikeReference(const ElementwiseDesc& desc) {
    SCOPED_TRACE(absl::StrCat("function ", static_cast<int>(desc.function.function), ": ",
                              desc.srcs[0].ToString(), ", ", desc.srcs.back().ToString(), " -> ",
                              desc.dst.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const auto reference = CreateElementwise(desc, {}, {.reference_only = true});
    ASSERT_THAT(reference, IsOk());
    std::vector<Bytes> packed;
    for (size_t s = 0; s < desc.srcs.size(); ++s) {
      const DataType type = desc.srcs[s].data_type();
      if (type == DataType::kF32) {
        packed.push_back(TruthIn(desc.srcs[s], s + 1));
        continue;
      }
      VisitIntegerOrDouble(type, [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T>) packed.push_back(IntegersIn<T>(desc.srcs[s], s + 1));
      });
    }
    const Inputs inputs = MultipleSources(packed);
    EXPECT_EQ(
        ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)),
        Execute(**reference, inputs, kArgDst, Garbage(desc.dst, 7), threading::Team::Serial()));
  }

  // The function of sources that have these dims each, with truth values of both types.
  void ExpectFunctionOf(Function function, DataType type, const std::vector<Dims>& sources,
                        const Dims& dims) {
    const bool gives_truth = functions::IsPredicate(function);
    for (const DataType truth : {DataType::kF32, DataType::kU8}) {
      ElementwiseDesc desc{{function}, {}, Plain(dims, gives_truth ? truth : type)};
      for (int s = 0; s < functions::ArityOf(function); ++s) {
        const bool is_condition = function == Function::kWhere && s == 0;
        desc.srcs.push_back(Plain(sources[s], is_condition ? truth : type));
      }
      ExpectLikeReference(desc);
      if (!gives_truth && function != Function::kWhere) return;
    }
  }

  // Every function of integers.
  void ExpectEveryFunction(DataType type, const std::vector<Dims>& sources, const Dims& dims) {
    for (int i = 0; i < functions::kFunctionCount; ++i) {
      const auto function = static_cast<Function>(i);
      if (functions::TakesIntegers(function)) ExpectFunctionOf(function, type, sources, dims);
    }
  }
};

// Rows of a few elements and of several vectors, and tails of every length.
TEST_P(IntegerElementwiseTest, EveryFunctionAndLength) {
  for (DataType type : kTypes) {
    for (int64_t length : {1, 2, 7, 8, 16, 23, 32, 133}) {
      const Dims dims = {2, length};
      ExpectEveryFunction(type, {dims, dims, dims}, dims);
    }
  }
}

// Truth values of real numbers, which have truth values of bytes too.
TEST_P(IntegerElementwiseTest, TruthValuesOfRealNumbers) {
  for (int i = 0; i < functions::kFunctionCount; ++i) {
    const auto function = static_cast<Function>(i);
    if (!functions::IsPredicate(function) && function != Function::kWhere) continue;
    for (int64_t length : {1, 7, 8, 16, 23, 133}) {
      const Dims dims = {2, length};
      ExpectFunctionOf(function, DataType::kF32, {dims, dims, dims}, dims);
      ExpectFunctionOf(function, DataType::kF32, {dims, {2, 1}, {1, length}}, dims);
    }
  }
}

TEST_P(IntegerElementwiseTest, EveryFunctionAndBroadcast) {
  const Dims whole = {5, 3, 19}, row = {1, 1, 19}, column = {5, 3, 1}, one = {1, 1, 1};
  for (DataType type : kTypes) {
    ExpectEveryFunction(type, {whole, row, column}, whole);
    ExpectEveryFunction(type, {whole, column, one}, whole);
    ExpectEveryFunction(type, {column, whole, row}, whole);
    ExpectEveryFunction(type, {one, column, whole}, whole);
    ExpectEveryFunction(type, {column, row, one}, whole);
    ExpectEveryFunction(type, {{5, 1, 3}, {5, 7, 1}, {1, 7, 3}}, {5, 7, 3});
  }
}

TEST_P(IntegerElementwiseTest, NoElements) {
  for (DataType type : kTypes) {
    ExpectEveryFunction(type, {{0, 3}, {1, 3}, {1, 1}}, {0, 3});
    ExpectEveryFunction(type, {{2, 0}, {2, 1}, {2, 0}}, {2, 0});
  }
}

// Padded tails, dimensions whose neighbours lie apart, and more than one piece of work.
TEST_P(IntegerElementwiseTest, EveryLayout) {
  for (DataType type : {DataType::kU8, DataType::kS32, DataType::kS64}) {
    for (const Dims& dims : {Dims{1, 17, 3, 4}, Dims{1, 40, 2, 91}}) {
      for (const Layout& layout : LayoutsOf(dims, type)) {
        const MemoryDesc& md = layout.desc;
        const MemoryDesc truth = md.WithDataType(DataType::kF32).value();
        ExpectLikeReference({{Function::kMul}, {md, md}, md});
        ExpectLikeReference({{Function::kEqual}, {md, Plain({1, 1, 1, 1}, type)}, truth});
        ExpectLikeReference({{Function::kWhere}, {truth, md, Plain(dims, type)}, md});
        ExpectLikeReference({{Function::kSub}, {Plain(dims, type), md}, md});
      }
    }
  }
}

// The rows lie along the channels, and there are none: nothing may be read.
TEST_P(ElementwiseTest, RowsOfNoElements) {
  const MemoryDesc md = Tagged({2, 0, 3, 4}, "nChw16c");
  ExpectFunction({{Function::kSub}, {md, md}, md}, [](auto* x) { return x[0] - x[1]; });
  ExpectFunction({{Function::kWhere}, {md, md, md}, md}, [](auto* x) { return x[0]; });
}

// Integers and f64, by the best row: vectors of each source's numbers, and of the result's.
class TypedElementwiseTest : public ::testing::Test {
 protected:
  template <typename T, typename Result = T>
  void ExpectResult(Function function, DataType type, const std::vector<std::vector<T>>& srcs,
                    const std::vector<Result>& expected) {
    SCOPED_TRACE(absl::StrCat("function ", static_cast<int>(function), " of ", DataTypeName(type)));
    const Dims dims = {static_cast<int64_t>(expected.size())};
    ElementwiseDesc desc{{function},
                         std::vector<MemoryDesc>(srcs.size(), Plain(dims, type)),
                         Plain(dims, functions::IsPredicate(function) ? DataType::kF32 : type)};
    const auto primitive = CreateElementwise(desc, {}, {});
    ASSERT_THAT(primitive, IsOk());
    const std::vector<Bytes> packed = PackAll(desc.srcs, srcs);
    EXPECT_EQ(Unpack<Result>(desc.dst, Execute(**primitive, MultipleSources(packed), kArgDst,
                                               Garbage(desc.dst, 7), threading::Team::Serial())),
              expected);
  }
};

TEST_F(TypedElementwiseTest, IntegersAreExactAndWrapAround) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
  const std::vector<int64_t> a = {kMost, kLeast, (int64_t{1} << 53) + 1, -7}, b = {1, -1, 3, 2};
  ExpectResult<int64_t>(Function::kAdd, DataType::kS64, {a, b},
                        {kLeast, kMost, (int64_t{1} << 53) + 4, -5});
  ExpectResult<int64_t>(Function::kMul, DataType::kS64, {a, b},
                        {kMost, kLeast, ((int64_t{1} << 53) + 1) * 3, -14});
  ExpectResult<int64_t>(Function::kDiv, DataType::kS64, {a, b},
                        {kMost, kLeast, 3002399751580331, -3});
  ExpectResult<int64_t>(Function::kFloorMod, DataType::kS64, {a, b}, {0, 0, 0, 1});
  ExpectResult<int64_t>(Function::kMod, DataType::kS64, {a, b}, {0, 0, 0, -1});
  ExpectResult<int64_t>(Function::kAbs, DataType::kS64, {a}, {kMost, kLeast, a[2], 7});
  ExpectResult<int64_t, float>(Function::kLess, DataType::kS64, {a, b}, {0, 1, 0, 1});
  ExpectResult<uint64_t, float>(Function::kLess, DataType::kU64,
                                {{~uint64_t{0}, 1}, {1, ~uint64_t{0}}}, {0, 1});
  ExpectResult<uint8_t>(Function::kAdd, DataType::kU8, {{200, 1}, {100, 2}}, {44, 3});
  ExpectResult<int8_t>(Function::kPower, DataType::kS8, {{-1, 2, 3, 0, 2}, {-3, -1, 5, 0, 7}},
                       {-1, 0, -13, 1, -128});
  ExpectResult<int16_t>(Function::kSub, DataType::kS16, {{-32768}, {1}}, {32767});
  ExpectResult<uint32_t>(Function::kShiftLeft, DataType::kU32, {{0x80000001, 1, 1}, {1, 31, 32}},
                         {2, 0x80000000, 0});
  ExpectResult<uint32_t>(Function::kBitNot, DataType::kU32, {{0xF0F0F0F0}}, {0x0F0F0F0F});
}

TEST_F(TypedElementwiseTest, DoublesAreDoubles) {
  ExpectResult<double>(Function::kAdd, DataType::kF64, {{1, 1e300}, {0x1p-50, 1e300}},
                       {1 + 0x1p-50, 2e300});
  ExpectResult<double>(Function::kSquareRoot, DataType::kF64, {{2}}, {std::sqrt(2.0)});
  ExpectResult<double, float>(Function::kEqual, DataType::kF64, {{1 + 0x1p-50}, {1}}, {0});
}

TEST_F(TypedElementwiseTest, WhatIsDividedByZeroIsZero) {
  for (Function function : {Function::kDiv, Function::kMod, Function::kFloorMod})
    ExpectResult<int32_t>(function, DataType::kS32, {{1, -2}, {0, 0}}, {0, 0});
}

TILEWIRE_TEST_EVERY_ROW(Elementwise);
INSTANTIATE_TEST_SUITE_P(AllImplementations, IntegerElementwiseTest,
                         ::testing::ValuesIn(ElementwiseImplementations().begin(),
                                             ElementwiseImplementations().end()),
                         RowName<Implementation<ElementwiseDesc>>);

TEST(ElementwiseErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc md = Plain({4, 5});
  const auto status = StatusOfCreating(CreateElementwise);
  EXPECT_THAT(status({{Function::kMod}, {md, md}, md}), IsOk());
  EXPECT_THAT(status({{Function::kMod}, {md}, md}), StatusIs(kInvalid, "1 sources"));
  EXPECT_THAT(status({{Function::kMod}, {md, Plain({4, 4})}, md}),
              StatusIs(kInvalid, "source 1 [4,4] is not broadcast"));
  EXPECT_THAT(status({{Function::kMod}, {md, Plain({5})}, md}), StatusIs(kInvalid, "source 1 [5]"));
  const MemoryDesc bytes = Plain({4, 5}, DataType::kU8);
  EXPECT_THAT(status({{Function::kMod}, {md, bytes}, md}), StatusIs(kUnimplemented, "f32 only"));
  EXPECT_THAT(status({{Function::kErf}, {bytes}, bytes}),
              StatusIs(kUnimplemented, "not defined for u8"));
  EXPECT_THAT(status({{Function::kBitNot}, {md}, md}),
              StatusIs(kUnimplemented, "not defined for f32"));
}

}  // namespace
}  // namespace tilewire::testing
