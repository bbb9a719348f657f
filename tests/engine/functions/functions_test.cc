// SPDX-License-Identifier: Apache-2.0
//
// Every row of engine/functions/functions.inc: formulas against the same in double, integers, and
// what the rows say of themselves.
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "engine/functions/function.h"
#include "engine/functions/integer_functions.h"
#include "engine/functions/onnx_functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/function_cases.h"

namespace tilewire::functions {
namespace {

using testing::FunctionCase;
using testing::kFunctionCases;

std::vector<Function> AllFunctions() {
  std::vector<Function> all;
  for (int i = 0; i < kFunctionCount; ++i) all.push_back(static_cast<Function>(i));
  return all;
}

double Evaluated(Function function, std::vector<double> x) {
  x.resize(3);
  return Evaluate({function}, x.data());
}

TEST(FunctionTableTest, RowsAreWhole) {
  std::set<absl::string_view> names;
  for (Function function : AllFunctions()) {
    const FunctionRow& row = RowOf(function);
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second) << "a name twice";
    EXPECT_TRUE(row.sources >= 1 && row.sources <= 3);
    EXPECT_TRUE(!IsBitwise(function) || TakesIntegers(function)) << "it takes nothing";
    EXPECT_TRUE(!HasCode(function) || !IsBitwise(function)) << "code for f32 without a formula";
    const bool is_real = row.sources == 1 && !IsBitwise(function);
    EXPECT_EQ(IsOfOneReal(function), is_real) << "functions of one real number come first";
  }
}

TEST(FunctionTableTest, EveryFunctionOfOneRealHasACase) {
  std::set<Function> tested;
  for (const FunctionCase& one : kFunctionCases) tested.insert(one.op.function);
  EXPECT_EQ(tested.size(), static_cast<size_t>(kRealFunctionCount));
}

// Away from kinks and from the bounds of every case.
constexpr double kPlaces[] = {-4.7, -2.9, -1.3, -0.71, -0.31, 0.17, 0.33, 0.69, 1.3, 2.6, 4.7};

// Central differences of two steps, whose errors of the third order cancel.
double SlopeAt(const EltwiseOp& op, double x) {
  constexpr double kStep = 0x1p-13;
  const auto difference = [&op, x](double step) {
    const double before[] = {x - step}, after[] = {x + step};
    return (Evaluate(op, after) - Evaluate(op, before)) / (2 * step);
  };
  return (4 * difference(kStep) - difference(2 * kStep)) / 3;
}

TEST(DerivativeTest, IsTheSlopeOfTheFormula) {
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    if (!HasSlope(one.op.function)) continue;
    for (double x : kPlaces) {
      const double slope = SlopeAt(one.op, x);
      if (!std::isfinite(slope)) continue;  // outside of the function's domain
      const double derivative = EltwiseDerivative(one.op, x);
      EXPECT_NEAR(derivative, slope, 1e-7 * (1 + std::abs(slope))) << "at " << x;
      if (!HasResultSlope(one.op)) continue;
      const double y = Evaluate(one.op, &x);
      EXPECT_NEAR(EltwiseDerivativeOfResult(one.op, y), derivative, 1e-9 * (1 + std::abs(slope)))
          << "from the result at " << x;
    }
  }
}

TEST(DerivativeTest, AtKinksAndBounds) {
  struct Case {
    EltwiseOp op;
    double x, derivative;
  };
  using enum Function;
  const Case cases[] = {
      {{kRelu}, 0, 0},
      {{kRelu, 0.25f}, 0, 0.25},
      {{kElu, 0.5f}, 0, 0.5},
      {{kAbs}, 0, 0},
      {{kSqrt}, 0, 0},
      {{kSqrt}, -1, 0},
      {{kBoundedRelu, 6}, 0, 0},
      {{kBoundedRelu, 6}, 6, 0},
      {{kBoundedRelu, 6}, 5.5, 1},
      {{kClip, -1, 2}, -1, 0},
      {{kClip, -1, 2}, 2, 0},
      {{kHardSigmoid, 0.25f, 0.5f}, 2, 0},
      {{kHardSwish, 0.25f, 0.5f}, 2, 1},
      {{kHardSwish, 0.25f, 0.5f}, -2, 0},
      {{kMish}, 0, 0.6},
      {{kSwish, 1}, 0, 0.5},
      {{kPow, 3, 0}, 0, 0},
      {{kSoftRelu}, -50, std::exp(-50)},
      {{kSoftRelu}, 500, 1},
      {{kLogistic}, -800, 0},
      {{kSign}, 0, 0},
      {{kRound}, 0.5, 0},
  };
  for (const Case& one : cases) {
    EXPECT_DOUBLE_EQ(EltwiseDerivative(one.op, one.x), one.derivative)
        << AlgorithmName(one.op.function) << " at " << one.x;
  }
}

// From dst: these and no others.
TEST(DerivativeTest, FollowsFromTheResultOfTheseFunctions) {
  using enum Function;
  const std::set<Function> expected = {kRelu, kElu,  kBoundedRelu, kClip,     kTanh,
                                       kExp,  kSqrt, kSoftRelu,    kLogistic, kLinear};
  for (Function function : AllFunctions()) {
    EXPECT_EQ(HasResultSlope({function, 0.5f}), expected.contains(function))
        << AlgorithmName(function);
  }
}

TEST(DerivativeTest, FollowsFromTheResultWhereTheTableSaysSo) {
  EXPECT_TRUE(HasResultSlope({Function::kRelu}));
  EXPECT_TRUE(HasResultSlope({Function::kElu, 0.5f}));
  EXPECT_FALSE(HasResultSlope({Function::kRelu, -0.5f}));
  EXPECT_FALSE(HasResultSlope({Function::kElu, -1}));
  EXPECT_FALSE(HasResultSlope({Function::kGelu}));
  EXPECT_FALSE(HasSlope(Function::kIsNan));
  EXPECT_FALSE(HasSlope(Function::kAdd));
  for (Function function : AllFunctions()) {
    EXPECT_TRUE(HasSlope(function) || !RowOf(function).has_result_slope);
    EXPECT_TRUE(HasSlope(function) || !IsOfOneReal(function) || IsPredicate(function))
        << AlgorithmName(function);
  }
}

// Bit patterns of all of f32, with the ends of every piece of the functions among them.
std::vector<float> Arguments() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> all = {0.0f,
                            -0.0f,
                            Limits::infinity(),
                            -Limits::infinity(),
                            Limits::max(),
                            Limits::min(),
                            Limits::quiet_NaN(),
                            Limits::lowest(),
                            0.5f,
                            -0.5f,
                            1,
                            -1,
                            2.5f,
                            -2.5f,
                            0x1p63f,
                            -0x1p63f,
                            88.5f,
                            Limits::denorm_min()};
  constexpr uint32_t kStep = 1000003;  // a prime: all exponents, ever-changing mantissas
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += kStep)
    all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return all;
}

TEST(FunctionTableTest, FormulasAreThoseOfDouble) {
  const std::vector<float> arguments = Arguments();
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    for (float x : arguments) {
      const double exact = one.value(x, one.op.alpha, one.op.beta);
      const float got = EltwiseScalar(one.op, x);
      const auto rounded = static_cast<float>(exact);
      if (std::isnan(exact)) {
        ASSERT_TRUE(std::isnan(got)) << x << " gives " << got;
      } else if (got != rounded) {
        ASSERT_TRUE(std::isfinite(exact)) << x << " gives " << got << ", not " << exact;
        ASSERT_LE(std::fabs(got - exact), one.formula_ulps * testing::Ulp(rounded))
            << x << " gives " << got << ", not " << exact;
      }
    }
  }
}

TEST(FunctionTableTest, ZeroIsPreservedWhereTheFormulaGivesIt) {
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    const double at_zero = one.value(0, one.op.alpha, one.op.beta);
    EXPECT_EQ(PreservesZero(one.op), at_zero == 0 && !std::signbit(at_zero));
  }
}

TEST(FunctionTableTest, FunctionsOfTwoAndThreeReals) {
  const double infinity = HUGE_VAL, nan = std::nan("");
  const auto is_nan = [](Function function, std::vector<double> x) {
    return std::isnan(Evaluated(function, std::move(x)));
  };
  struct Case {
    Function function;
    std::vector<double> x;
    double value;
  };
  const Case cases[] = {
      {Function::kAdd, {2, -3}, -1},
      {Function::kMul, {2, -3}, -6},
      {Function::kMax, {2, -3}, 2},
      {Function::kMin, {2, -3}, -3},
      {Function::kDiv, {3, -2}, -1.5},
      {Function::kSub, {2, -3}, 5},
      {Function::kPRelu, {-2, 3}, -6},
      {Function::kPRelu, {2, 3}, 2},
      {Function::kPower, {-2, 3}, -8},
      {Function::kMod, {-7, 4}, -3},
      {Function::kMod, {5, infinity}, 5},
      {Function::kMod, {-5, -infinity}, -5},
      {Function::kFloorMod, {-7, 4}, 1},
      {Function::kFloorMod, {5, infinity}, 5},
      {Function::kFloorMod, {5, -infinity}, -infinity},
      {Function::kEqual, {0.0, -0.0}, 1},
      {Function::kEqual, {nan, nan}, 0},
      {Function::kLess, {2, 3}, 1},
      {Function::kLess, {3, 3}, 0},
      {Function::kLessOrEqual, {3, 3}, 1},
      {Function::kLessOrEqual, {nan, 3}, 0},
      {Function::kAnd, {nan, 2}, 1},
      {Function::kAnd, {0, 2}, 0},
      {Function::kOr, {0, -2}, 1},
      {Function::kOr, {0, -0.0}, 0},
      {Function::kXor, {1, 2}, 0},
      {Function::kXor, {0, 2}, 1},
      {Function::kWhere, {0.5, 3, 4}, 3},
      {Function::kWhere, {-0.0, 3, 4}, 4},
  };
  std::set<Function> tested;
  for (const Case& one : cases) {
    EXPECT_EQ(Evaluated(one.function, one.x), one.value) << RowOf(one.function).name;
    tested.insert(one.function);
  }
  for (Function function : AllFunctions()) {
    if (ArityOf(function) == 1 || IsBitwise(function)) continue;
    EXPECT_EQ(tested.count(function), 1u) << RowOf(function).name << " has no case";
  }
  for (Function function : {Function::kMax, Function::kMin, Function::kAdd}) {
    EXPECT_TRUE(is_nan(function, {nan, 1}) && is_nan(function, {1, nan})) << RowOf(function).name;
  }
}

TEST(FunctionTableTest, IntegersWrapAround) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = -kMost - 1;
  struct Case {
    Function function;
    std::vector<int64_t> x;
    int64_t of_64_bits, of_8_bits;  // of the lowest bits of x
  };
  const Case cases[] = {
      {Function::kAbs, {kLeast}, kLeast, 0},
      {Function::kAbs, {-128}, 128, -128},
      {Function::kRound, {-7}, -7, -7},
      {Function::kFloor, {-7}, -7, -7},
      {Function::kCeil, {-7}, -7, -7},
      {Function::kSign, {-7}, -1, -1},
      {Function::kNegate, {-128}, 128, -128},
      {Function::kTruncate, {-7}, -7, -7},
      {Function::kNot, {256}, 0, 1},
      {Function::kBitNot, {5}, -6, -6},
      {Function::kAdd, {kMost, 1}, kLeast, 0},
      {Function::kMul, {100, 3}, 300, 44},
      {Function::kMax, {-3, 2}, 2, 2},
      {Function::kMin, {-3, 2}, -3, -3},
      {Function::kDiv, {-7, 2}, -3, -3},
      {Function::kDiv, {kLeast, -1}, kLeast, 0},
      {Function::kDiv, {-128, -1}, 128, -128},
      {Function::kDiv, {7, 0}, 0, 0},
      {Function::kSub, {kLeast, 1}, kMost, -1},
      {Function::kPRelu, {-100, 3}, -300, -44},
      {Function::kPRelu, {5, 3}, 5, 5},
      {Function::kPower, {2, 7}, 128, -128},
      {Function::kPower, {-1, -3}, -1, -1},
      {Function::kPower, {2, -1}, 0, 0},
      {Function::kMod, {-7, 4}, -3, -3},
      {Function::kMod, {7, 0}, 0, 0},
      {Function::kFloorMod, {-7, 4}, 1, 1},
      {Function::kEqual, {256, 0}, 0, 1},
      {Function::kLess, {128, 0}, 0, 1},
      {Function::kLessOrEqual, {3, 3}, 1, 1},
      {Function::kAnd, {2, 3}, 1, 1},
      {Function::kOr, {0, 256}, 1, 0},
      {Function::kXor, {2, 3}, 0, 0},
      {Function::kBitAnd, {6, 3}, 2, 2},
      {Function::kBitOr, {6, 3}, 7, 7},
      {Function::kBitXor, {6, 3}, 5, 5},
      {Function::kShiftLeft, {3, 7}, 384, -128},
      {Function::kShiftLeft, {3, 64}, 0, 0},
      {Function::kShiftRight, {-1, 60}, 15, 0},
      {Function::kShiftRight, {-1, 4}, kMost >> 3, 15},
      {Function::kWhere, {1, 5, 6}, 5, 5},
  };
  std::set<Function> tested;
  for (Case one : cases) {
    SCOPED_TRACE(RowOf(one.function).name);
    one.x.resize(3);
    EXPECT_EQ(EvaluateIntegers({one.function}, one.x.data()), one.of_64_bits);
    const int8_t narrow[] = {static_cast<int8_t>(one.x[0]), static_cast<int8_t>(one.x[1]),
                             static_cast<int8_t>(one.x[2])};
    EXPECT_EQ(EvaluateIntegers({one.function}, narrow), static_cast<int8_t>(one.of_8_bits));
    tested.insert(one.function);
  }
  for (Function function : AllFunctions())
    EXPECT_EQ(tested.count(function) == 1, TakesIntegers(function)) << RowOf(function).name;
}

TEST(FunctionTableTest, ValuesOfKnownFunctionsAreTheSame) {
  for (int8_t x : {-128, -7, 0, 3, 127}) {
    for (int8_t y : {-128, -1, 0, 2, 127}) {
      EXPECT_EQ((IntegerOf<Function::kDiv>(x, y)), OfIntegers<int8_t>(Function::kDiv, x, y, 0));
      EXPECT_EQ((IntegerOf<Function::kMul>(x, y)), OfIntegers<int8_t>(Function::kMul, x, y, 0));
    }
  }
}

TEST(OnnxFunctionsTest, AttributesAreNamed) {
  const OnnxFunction none{"", 1, Function::kTanh, 0}, two{"", 1, Function::kTanh, 0, "a bc"},
      one{"", 1, Function::kTanh, 0, "a"};
  EXPECT_EQ(none.AlphaName(), "");
  EXPECT_EQ(none.BetaName(), "");
  EXPECT_EQ(one.AlphaName(), "a");
  EXPECT_EQ(one.BetaName(), "");
  EXPECT_EQ(two.AlphaName(), "a");
  EXPECT_EQ(two.BetaName(), "bc");
}

TEST(OnnxFunctionsTest, RowsAreWhole) {
  std::set<absl::string_view> ops;
  for (const OnnxFunction& row : kOnnxFunctions) {
    SCOPED_TRACE(row.op);
    EXPECT_TRUE(ops.insert(row.op).second) << "an operator twice";
    EXPECT_TRUE(IsOfOneReal(row.function));
    EXPECT_GE(row.since, 1);
    EXPECT_TRUE(row.BetaName().empty() || !row.AlphaName().empty());
    const bool in_cells = row.Is(OnnxFunction::kInCells | OnnxFunction::kOnlyInCells);
    EXPECT_TRUE(!in_cells || HasCode(row.function)) << "cells are generated code";
    const bool is_activation =
        !row.Is(OnnxFunction::kFolds | OnnxFunction::kThroughReals | OnnxFunction::kOnlyInCells);
    EXPECT_TRUE(!is_activation || HasCode(row.function)) << "activations are generated code";
  }
}

}  // namespace
}  // namespace tilewire::functions
