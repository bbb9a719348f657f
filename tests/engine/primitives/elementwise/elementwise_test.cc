// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/elementwise/elementwise.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Function = jit::Elementwise::Function;

constexpr int kFunctionCount = static_cast<int>(Function::kBitNot) + 1;

class ElementwiseTest : public RowTest<ElementwiseDesc> {
 protected:
  ElementwiseTest() : RowTest(CreateElementwise) {}

  // Compares with `formula` of the numbers x[0], x[1], x[2].
  template <typename Formula>
  void ExpectFunction(const ElementwiseDesc& desc, Formula formula) {
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
      ASSERT_TRUE(BitsOf({got[i]}) == BitsOf({expected}) ||
                  (std::isnan(got[i]) && std::isnan(expected)))
          << "element " << i << ": " << got[i] << ", not " << expected;
      ++i;
    });
  }
};

// Of the functions whose formula is one operation; the conformance of all is tested with ONNX's.
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
  for (int i = 0; i < kFunctionCount; ++i) {
    const jit::Elementwise function{static_cast<Function>(i), 0.75f, 0.5f};
    const int arity = jit::ArityOf(function.function);
    ExpectFunction({function, std::vector<MemoryDesc>(arity, md), md},
                   [&](const float* x) { return jit::Evaluate(function, x); });
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

// The rows lie along the channels, and there are none: nothing may be read.
TEST_P(ElementwiseTest, RowsOfNoElements) {
  const MemoryDesc md = Tagged({2, 0, 3, 4}, "nChw16c");
  ExpectFunction({{Function::kSub}, {md, md}, md}, [](auto* x) { return x[0] - x[1]; });
  ExpectFunction({{Function::kWhere}, {md, md, md}, md}, [](auto* x) { return x[0]; });
}

// Integers and f64, of the reference: vectors of each source's numbers, and of the result's.
class TypedElementwiseTest : public ::testing::Test {
 protected:
  template <typename T, typename Result = T>
  void ExpectResult(Function function, DataType type, const std::vector<std::vector<T>>& srcs,
                    const std::vector<Result>& expected) {
    SCOPED_TRACE(absl::StrCat("function ", static_cast<int>(function), " of ", DataTypeName(type)));
    const Dims dims = {static_cast<int64_t>(expected.size())};
    ElementwiseDesc desc{{function},
                         std::vector<MemoryDesc>(srcs.size(), Plain(dims, type)),
                         Plain(dims, jit::IsPredicate(function) ? DataType::kF32 : type)};
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
  ExpectResult<int8_t>(Function::kPow, DataType::kS8, {{-1, 2, 3, 0, 2}, {-3, -1, 5, 0, 7}},
                       {-1, 0, -13, 1, -128});
  ExpectResult<int16_t>(Function::kSub, DataType::kS16, {{-32768}, {1}}, {32767});
  ExpectResult<uint32_t>(Function::kShiftLeft, DataType::kU32, {{0x80000001, 1, 1}, {1, 31, 32}},
                         {2, 0x80000000, 0});
  ExpectResult<uint32_t>(Function::kBitNot, DataType::kU32, {{0xF0F0F0F0}}, {0x0F0F0F0F});
}

TEST_F(TypedElementwiseTest, DoublesAreDoubles) {
  ExpectResult<double>(Function::kAdd, DataType::kF64, {{1, 1e300}, {0x1p-50, 1e300}},
                       {1 + 0x1p-50, 2e300});
  ExpectResult<double>(Function::kSqrt, DataType::kF64, {{2}}, {std::sqrt(2.0)});
  ExpectResult<double, float>(Function::kEqual, DataType::kF64, {{1 + 0x1p-50}, {1}}, {0});
}

TEST_F(TypedElementwiseTest, WhatIsDividedByZeroIsZero) {
  for (Function function : {Function::kDiv, Function::kMod, Function::kFloorMod})
    ExpectResult<int32_t>(function, DataType::kS32, {{1, -2}, {0, 0}}, {0, 0});
}

TILEWIRE_TEST_EVERY_ROW(Elementwise);

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
