// SPDX-License-Identifier: Apache-2.0
//
// Functions of elements of one to three tensors, and what they give for single numbers; those that
// vectors and post-ops have are in eltwise.h. NaN gives NaN where the formula of a function does.
// Pure functions; thread-safe. Source: ONNX.
#ifndef ENGINE_FUNCTIONS_ELEMENTWISE_H_
#define ENGINE_FUNCTIONS_ELEMENTWISE_H_

namespace tilewire::functions {

// dst = function(srcs...), element by element; sources are broadcast to dst by numpy's rule. Truth
// values are 1 and 0.
struct Elementwise {
  enum class Function {
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMax,
    kMin,
    kPow,
    kMod,       // the remainder of a quotient cut towards zero
    kFloorMod,  // of one rounded down
    kPRelu,     // of two
    kEqual,
    kLess,
    kLessOrEqual,
    kAnd,
    kOr,
    kXor,
    // of two integers, bit by bit; shifts by the number of bits or more give 0
    kBitAnd,
    kBitOr,
    kBitXor,
    kShiftLeft,
    kShiftRight,
    kWhere,  // of three: src0 ? src1 : src2
    // of one
    kLog,
    kReciprocal,
    kFloor,
    kCeil,
    kRound,
    kSign,
    kErf,
    kGelu,
    kNot,
    kIsNan,
    kIsInf,
    kSin,
    kCos,
    kTan,
    kSinh,
    kCosh,
    kAsin,
    kAcos,
    kAtan,
    kAsinh,
    kAcosh,
    kAtanh,
    kSelu,             // x > 0 ? beta x : beta alpha (e^x - 1)
    kCelu,             // max(0, x) + min(0, alpha (e^(x / alpha) - 1))
    kThresholdedRelu,  // x > alpha ? x : 0
    kShrink,           // x < -alpha ? x + beta : x > alpha ? x - beta : 0
    kSoftsign,         // x / (1 + |x|)
    kTruncate,         // to a 64-bit integer, towards zero: NaN gives 0, others the nearest
    // of one, for the types that eltwise.h's vectors do not have
    kAbs,
    kNegate,
    kExp,
    kSqrt,
    kBitNot,  // of an integer
  } function = Function::kAdd;
  float alpha = 0, beta = 0;
};

// Sources that the function has: 1, 2 or 3.
int ArityOf(Elementwise::Function function);

// Whether the result is a truth value.
bool IsPredicate(Elementwise::Function function);

// Whether the function is of the bits of integers.
bool IsBitwise(Elementwise::Function function);

// Whether the function is defined for integers.
bool TakesIntegers(Elementwise::Function function);

// Whether x and y are as one of the predicates kEqual to kXor says.
template <typename T>
bool Holds(Elementwise::Function predicate, T x, T y) {
  using Function = Elementwise::Function;
  switch (predicate) {
    case Function::kEqual:
      return x == y;
    case Function::kLess:
      return x < y;
    case Function::kLessOrEqual:
      return x <= y;
    case Function::kAnd:
      return x != 0 && y != 0;
    case Function::kOr:
      return x != 0 || y != 0;
    default:
      return (x != 0) != (y != 0);
  }
}

// `x` holds ArityOf() numbers; the function is not of bits.
float Evaluate(const Elementwise& elementwise, const float* x);
double Evaluate(const Elementwise& elementwise, const double* x);

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_ELEMENTWISE_H_
