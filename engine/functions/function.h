// SPDX-License-Identifier: Apache-2.0
//
// Functions of one, two and three numbers, element by element: the rows of functions.inc, and their
// values. Every other list of functions (algorithms of eltwise and binary, operations of networks,
// functions of recurrent cells) is a part of this one. Pure functions; thread-safe.
//
// Sources: MKL-DNN 1.0.4 for the twelve from relu to gelu (tests/engine/rows.txt A15); ONNX and
// current models for the others.
#ifndef ENGINE_FUNCTIONS_FUNCTION_H_
#define ENGINE_FUNCTIONS_FUNCTION_H_

#include <cstdint>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tilewire::functions {

enum class Function : uint8_t {
#define TILEWIRE_FUNCTION(name, ...) k##name,
#include "engine/functions/functions.inc"
};

// Reasons for what a row does not have.
inline constexpr absl::string_view
    kRounded = "its results are fractions, which eltwise rounds",
    kFinite = "every integer is a finite number",
    kNoBits = "real numbers have a meaning only as a whole",
    kTurns = "the turns in a large argument take more digits of pi than a vector of f32 has",
    kRare = "plain loops suffice for what models hardly use",
    kTruth = "a truth value does not grow with its argument",
    kSeveral = "of several arguments: the primitives that compute it have its gradients",
    kLongDivision = "a remainder of f32 takes as many steps as its quotient has bits";

struct FunctionRow {
  absl::string_view name;  // "softsign"
  int sources;             // 1, 2 or 3
  bool gives_truth;        // 1 or 0
  // Why the function lacks the form; empty if it has it.
  absl::string_view no_reals, no_integers, no_code, no_slope;
  bool has_result_slope = false;  // the derivative follows from the function's value
};

inline constexpr FunctionRow kFunctionRows[] = {
#define NUMBER false
#define TRUTH true
#define REALS(...) ""
#define INTEGERS(...) ""
#define CODE ""
#define VECTORS(...) ""
#define NONE(why) why
#define SLOPE(...) ""
#define RESULT_SLOPE(...) "", true
#define TILEWIRE_FUNCTION(name, text, sources, gives_truth, reals, integers, code, slope) \
  {text, sources, gives_truth, reals, integers, code, slope},
#include "engine/functions/functions.inc"
};
constexpr int kFunctionCount = static_cast<int>(std::size(kFunctionRows));

constexpr const FunctionRow& RowOf(Function function) {
  return kFunctionRows[static_cast<int>(function)];
}
constexpr absl::string_view AlgorithmName(Function function) { return RowOf(function).name; }
constexpr int ArityOf(Function function) { return RowOf(function).sources; }
// Whether the result is a truth value.
constexpr bool IsPredicate(Function function) { return RowOf(function).gives_truth; }
// Whether the function is of the bits of integers.
constexpr bool IsBitwise(Function function) { return !RowOf(function).no_reals.empty(); }
constexpr bool TakesIntegers(Function function) { return RowOf(function).no_integers.empty(); }
// Whether generated code computes it for f32.
constexpr bool HasCode(Function function) { return RowOf(function).no_code.empty(); }

// Whether it is of one real number and has a derivative.
constexpr bool HasSlope(Function function) { return RowOf(function).no_slope.empty(); }

// Functions of one real number, which are the first ones of the table.
constexpr int kRealFunctionCount = static_cast<int>(Function::kBitNot);
constexpr bool IsOfOneReal(Function function) {
  return static_cast<int>(function) < kRealFunctionCount;
}

// A function with its parameters: dst = function(srcs...), element by element.
struct Elementwise {
  using Function = functions::Function;
  Function function = Function::kRelu;
  float alpha = 0, beta = 0;
  bool operator==(const Elementwise&) const = default;
};

// kRoundBits, which models alone use: the nearest number, a tie to the even one, that has as many
// significant bits as `bits`, and below `least_normal`, a power of two, the spacing that is right
// above it: what a narrow floating-point type has. Magnitudes beyond 2^100 are 2^100; NaN stays.
constexpr Elementwise RoundToBits(int bits, float least_normal) {
  return {Function::kRoundBits, static_cast<float>(1 << (24 - bits)), least_normal};
}

using EltwiseAlgorithm = Function;
using EltwiseOp = Elementwise;  // of one real number

// kInvalidArgument  it is not of one real number, or has no generated code, which says why; `use`
//                   is what wants code ("post-op")
absl::Status CheckHasCode(absl::string_view use, Function function);

// The formula; `x` holds ArityOf() numbers. Not of IsBitwise().
float Evaluate(const Elementwise& elementwise, const float* x);
double Evaluate(const Elementwise& elementwise, const double* x);
inline float EltwiseScalar(const EltwiseOp& op, float x) { return Evaluate(op, &x); }

// f'(x), and f' where y = f(x) alone is known. Of a function that HasSlope(), and HasResultSlope().
double EltwiseDerivative(const EltwiseOp& op, double x);
double EltwiseDerivativeOfResult(const EltwiseOp& op, double y);
// Whether the derivative follows from the value: not where the function takes one twice.
bool HasResultSlope(const EltwiseOp& op);

// Whether f(0) is 0 and not -0, so that every byte of a tail padded with zeros stays zero.
bool PreservesZero(const EltwiseOp& op);

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_FUNCTION_H_
