// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/eltwise_emitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/check.h"

namespace tilewire::jit {

using functions::Function;
using Predicate = VectorMath::Predicate;

struct EltwiseEmitter::Codes {
  struct Code {
    int scratch = 0;
    void (*apply)(EltwiseEmitter& e, const Vector& v) = nullptr;
  };
  // Null for a function that has none.
  static constexpr Code Of(Function function) {
    const Code simple = OfSimple(function);
    return simple.apply != nullptr ? simple : OfExponential(function);
  }
  static constexpr Code OfSimple(Function function);
  static constexpr Code OfExponential(Function function);
  static constexpr bool FitTheTable() {
    for (int i = 0; i < functions::kFunctionCount; ++i) {
      const auto function = static_cast<Function>(i);
      const bool wants = functions::IsOfOneReal(function) && functions::HasCode(function);
      if (wants != (Of(function).apply != nullptr)) return false;
    }
    return true;
  }
};

constexpr EltwiseEmitter::Codes::Code EltwiseEmitter::Codes::OfSimple(Function function) {
  switch (function) {
    case Function::kRelu:
      return {1, [](EltwiseEmitter& e, const Vector& v) { e.ApplyRelu(v); }};
    case Function::kSquare:
      return {0, [](EltwiseEmitter& e, const Vector& v) { e.generator_->vmulps(v, v, v); }};
    case Function::kAbs:
      return {0, [](EltwiseEmitter& e, const Vector& v) { e.math_.Abs(v); }};
    case Function::kSqrt:
      return {1, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.AtLeast(v, 0, e.Scratch(0));
                e.generator_->vsqrtps(v, v);
              }};
    case Function::kLinear:
      return {1, [](EltwiseEmitter& e, const Vector& v) { e.ApplyLine(v); }};
    case Function::kBoundedRelu:
      return {1, [](EltwiseEmitter& e, const Vector& v) { e.ApplyClamp(v, 0, e.op_.alpha); }};
    case Function::kClip:
      return {1,
              [](EltwiseEmitter& e, const Vector& v) { e.ApplyClamp(v, e.op_.alpha, e.op_.beta); }};
    case Function::kHardSigmoid:
      return {1, [](EltwiseEmitter& e, const Vector& v) {
                e.ApplyLine(v);
                e.ApplyClamp(v, 0, 1);
              }};
    case Function::kHardSwish:
      return {2, [](EltwiseEmitter& e, const Vector& v) { e.ApplyHardSwish(v); }};
    case Function::kRound:
      return {0, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Round(v, VectorMath::Rounding::kNearest);
              }};
    case Function::kFloor:
      return {0, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Round(v, VectorMath::Rounding::kDown);
              }};
    case Function::kCeil:
      return {0, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Round(v, VectorMath::Rounding::kUp);
              }};
    case Function::kSoftsign:
      return {1, [](EltwiseEmitter& e, const Vector& v) { e.ApplySoftsign(v); }};
    case Function::kThresholdedRelu:
      return {1, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.KeepWhere(v, v, Predicate::kGreater, e.math_.Constant(e.op_.alpha),
                                  e.Scratch(0));
              }};
    case Function::kShrink:
      return {3, [](EltwiseEmitter& e, const Vector& v) { e.ApplyShrink(v); }};
    case Function::kSign:
      return {2, [](EltwiseEmitter& e, const Vector& v) { e.ApplySign(v); }};
    case Function::kReciprocal:
      return {1, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Load(e.Scratch(0), 1);
                e.generator_->vdivps(v, e.Scratch(0), v);
              }};
    case Function::kNegate:
      return {1, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Load(e.Scratch(0), -0.0f);
                e.generator_->vsubps(v, e.Scratch(0), v);
              }};
    case Function::kSquareRoot:
      return {0, [](EltwiseEmitter& e, const Vector& v) { e.generator_->vsqrtps(v, v); }};
    case Function::kTruncate:
      return {1, [](EltwiseEmitter& e, const Vector& v) { e.ApplyTruncate(v); }};
    case Function::kNot:
      return {2, [](EltwiseEmitter& e, const Vector& v) {
                e.ApplyTruth(v, v, Predicate::kEqual, e.math_.Constant(0));
              }};
    case Function::kIsNan:
      return {2, [](EltwiseEmitter& e, const Vector& v) {
                e.ApplyTruth(v, v, Predicate::kUnordered, v);
              }};
    case Function::kIsInf:
      return {2, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Abs(v);
                e.ApplyTruth(v, v, Predicate::kEqual,
                             e.math_.Constant(std::numeric_limits<float>::infinity()));
              }};
    default:
      return {};
  }
}

// By exponential functions and logarithms.
constexpr EltwiseEmitter::Codes::Code EltwiseEmitter::Codes::OfExponential(Function function) {
  switch (function) {
    case Function::kTanh:
      return {3, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Tanh(v, e.Scratch(0), e.Scratch(1), e.Scratch(2));
              }};
    case Function::kElu:
      return {3, [](EltwiseEmitter& e, const Vector& v) { e.ApplyElu(v); }};
    case Function::kSoftRelu:
      return {3, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.SoftPlus(v, e.Scratch(0), e.Scratch(1), e.Scratch(2));
              }};
    case Function::kLogistic:
      return {3, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Logistic(v, e.Scratch(0), e.Scratch(1), e.Scratch(2));
              }};
    case Function::kExp:
      return {2, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Exp(v, e.Scratch(0), e.Scratch(1));
              }};
    case Function::kGelu:
      return {4, [](EltwiseEmitter& e, const Vector& v) { e.ApplyGelu(v); }};
    case Function::kSwish:
      return {4, [](EltwiseEmitter& e, const Vector& v) { e.ApplySwish(v); }};
    case Function::kGeluErf:
      return {5, [](EltwiseEmitter& e, const Vector& v) { e.ApplyGeluErf({v.getIdx()}); }};
    case Function::kMish:
      return {4, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Mish(v, e.Scratch(0), e.Scratch(1), e.Scratch(2), e.Scratch(3));
              }};
    case Function::kLog:
      return {5, [](EltwiseEmitter& e, const Vector& v) { e.math_.Log(v, e.AllScratch()); }};
    case Function::kPow:
      return {5, [](EltwiseEmitter& e, const Vector& v) { e.ApplyPow(v); }};
    case Function::kSelu:
      return {3, [](EltwiseEmitter& e, const Vector& v) { e.ApplySelu(v); }};
    case Function::kCelu:
      return {3, [](EltwiseEmitter& e, const Vector& v) { e.ApplyCelu(v); }};
    case Function::kErf:
      return {3, [](EltwiseEmitter& e, const Vector& v) {
                e.math_.Erf(v, e.Scratch(0), e.Scratch(1), e.Scratch(2));
              }};
    case Function::kScaledTanh:
      return {3, [](EltwiseEmitter& e, const Vector& v) { e.ApplyScaledTanh(v); }};
    default:
      return {};
  }
}

int EltwiseEmitter::ScratchCount(Function function) { return Codes::Of(function).scratch; }

EltwiseEmitter::EltwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                               const functions::EltwiseOp& op, Registers registers)
    : generator_(generator),
      op_(op),
      registers_(std::move(registers)),
      math_(generator, unit, registers_.table, registers_.mask) {
  static_assert(Codes::FitTheTable(), "code and functions.inc differ");
  TILEWIRE_CHECK(Codes::Of(op.function).apply != nullptr, "a function without code");
  TILEWIRE_CHECK(static_cast<int>(registers_.scratch.size()) >= ScratchCount(op.function),
                 "too few scratch registers");
}

void EltwiseEmitter::LoadTable() { math_.LoadTable(); }
void EltwiseEmitter::EmitTable() { math_.EmitTable(); }

void EltwiseEmitter::Apply(absl::Span<const int> vector_registers) {
  if (op_.function == Function::kGeluErf) return ApplyGeluErf(vector_registers);
  const Codes::Code code = Codes::Of(op_.function);
  for (int index : vector_registers) code.apply(*this, math_.unit().Vector(index));
}

void EltwiseEmitter::ApplyGeluErf(absl::Span<const int> vector_registers) {
  constexpr size_t kMostAtOnce = 3;
  constexpr size_t kScratch = std::tuple_size_v<VectorMath::Scratch5>;
  const size_t at_once = std::min(kMostAtOnce, registers_.scratch.size() / kScratch);
  for (size_t i = 0; i < vector_registers.size(); i += at_once) {
    std::vector<Vector> vs;
    std::vector<VectorMath::Scratch5> scratch;
    for (int index : vector_registers.subspan(i, at_once)) {
      scratch.push_back(ScratchFrom(static_cast<int>(vs.size() * kScratch)));
      vs.push_back(math_.unit().Vector(index));
    }
    math_.GeluErf(vs, scratch);
  }
}

void EltwiseEmitter::ApplyRelu(const Vector& v) {
  if (op_.alpha == 0) return math_.AtLeast(v, 0, Scratch(0));
  generator_->vmulps(Scratch(0), v, math_.Constant(op_.alpha));
  math_.TakeWhereNegative(v, v, Scratch(0));
}

void EltwiseEmitter::ApplyElu(const Vector& v) {
  const Vector x = Scratch(2);
  generator_->vmovaps(x, v);
  math_.AtMost(v, 0, Scratch(0));
  math_.ExpMinus1(v, Scratch(0), Scratch(1));
  generator_->vmulps(Scratch(0), v, math_.Constant(op_.alpha));
  math_.TakeWhereNegative(x, x, Scratch(0));
  generator_->vmovaps(v, x);
}

void EltwiseEmitter::ApplySelu(const Vector& v) {
  const Vector scaled = Scratch(2), x = Scratch(0);
  generator_->vmovaps(scaled, v);
  math_.AtMost(v, 0, Scratch(0));
  math_.ExpMinus1(v, Scratch(0), Scratch(1));
  generator_->vmulps(v, v, math_.Constant(op_.beta * op_.alpha));
  generator_->vmovaps(x, scaled);
  generator_->vmulps(scaled, scaled, math_.Constant(op_.beta));
  math_.TakeWhere(v, x, Predicate::kGreater, math_.Constant(0), scaled, Scratch(1));
}

void EltwiseEmitter::ApplyCelu(const Vector& v) {
  const Vector x = Scratch(2);
  generator_->vmovaps(x, v);
  math_.Load(Scratch(0), op_.alpha);
  generator_->vdivps(v, v, Scratch(0));
  if (op_.alpha > 0) {
    math_.AtMost(v, 0, Scratch(0));
    math_.ExpMinus1(v, Scratch(0), Scratch(1));
  } else {
    math_.ExpMinus1OfAny(v, Scratch(0), Scratch(1));
  }
  generator_->vmulps(v, v, math_.Constant(op_.alpha));
  math_.AtMost(v, 0, Scratch(0));
  math_.AtLeast(x, 0, Scratch(0));
  generator_->vaddps(v, v, x);
}

void EltwiseEmitter::ApplyShrink(const Vector& v) {
  const Vector x = Scratch(0), raised = Scratch(1), spare = Scratch(2);
  generator_->vmovaps(x, v);
  generator_->vsubps(v, v, math_.Constant(op_.beta));
  math_.KeepWhere(v, x, Predicate::kGreater, math_.Constant(op_.alpha), spare);
  generator_->vaddps(raised, x, math_.Constant(op_.beta));
  math_.TakeWhere(v, x, Predicate::kLess, math_.Constant(-op_.alpha), raised, spare);
}

// 1 with x's sign where x is not 0, and NaN.
void EltwiseEmitter::ApplySign(const Vector& v) {
  const Vector one = Scratch(0), spare = Scratch(1);
  const VectorUnit& unit = math_.unit();
  unit.And(generator_, one, v, math_.ConstantBits(0x80000000));
  unit.Or(generator_, one, one, math_.Constant(1));
  math_.KeepWhere(one, v, Predicate::kUnequal, math_.Constant(0), spare);
  math_.KeepWhere(v, v, Predicate::kUnordered, v, spare);
  generator_->vaddps(v, v, one);
}

void EltwiseEmitter::ApplyTruncate(const Vector& v) {
  math_.KeepWhere(v, v, Predicate::kOrdered, v, Scratch(0));
  ApplyClamp(v, -0x1p63f, 0x1p63f);
  math_.Round(v, VectorMath::Rounding::kCut);
}

void EltwiseEmitter::ApplySoftsign(const Vector& v) {
  generator_->vmovaps(Scratch(0), v);
  math_.Abs(v);
  generator_->vaddps(v, v, math_.Constant(1));
  generator_->vdivps(v, Scratch(0), v);
}

void EltwiseEmitter::ApplyScaledTanh(const Vector& v) {
  generator_->vmulps(v, v, math_.Constant(op_.beta));
  math_.Tanh(v, Scratch(0), Scratch(1), Scratch(2));
  generator_->vmulps(v, v, math_.Constant(op_.alpha));
}

void EltwiseEmitter::ApplyTruth(const Vector& v, const Vector& a, Predicate predicate,
                                const Xbyak::Operand& b) {
  const Vector one = Scratch(0);
  math_.Load(one, 1);
  math_.KeepWhere(one, a, predicate, b, Scratch(1));
  generator_->vmovaps(v, one);
}

void EltwiseEmitter::ApplyClamp(const Vector& v, float low, float high) {
  math_.AtLeast(v, low, Scratch(0));
  math_.AtMost(v, high, Scratch(0));
}

void EltwiseEmitter::ApplyLine(const Vector& v) {
  math_.Load(Scratch(0), op_.alpha);
  generator_->vfmadd213ps(v, Scratch(0), math_.Constant(op_.beta));
}

void EltwiseEmitter::ApplyHardSwish(const Vector& v) {
  generator_->vmovaps(Scratch(1), v);
  ApplyLine(v);
  ApplyClamp(v, 0, 1);
  generator_->vmulps(v, v, Scratch(1));
}

void EltwiseEmitter::ApplySwish(const Vector& v) {
  generator_->vmovaps(Scratch(3), v);
  if (op_.alpha != 1) generator_->vmulps(v, v, math_.Constant(op_.alpha));
  math_.Logistic(v, Scratch(0), Scratch(1), Scratch(2));
  generator_->vmulps(v, v, Scratch(3));
}

// x logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): see GeluByTanh() in functions/function.cc.
void EltwiseEmitter::ApplyGelu(const Vector& v) {
  const double twice_root = 2 * std::sqrt(2 / M_PI);
  generator_->vmovaps(Scratch(3), v);
  generator_->vmulps(v, v, v);
  math_.Load(Scratch(0), static_cast<float>(twice_root * 0.044715));
  generator_->vfmadd213ps(v, Scratch(0), math_.Constant(static_cast<float>(twice_root)));
  generator_->vmulps(v, v, Scratch(3));
  math_.Logistic(v, Scratch(0), Scratch(1), Scratch(2));
  generator_->vmulps(v, v, Scratch(3));
}

void EltwiseEmitter::ApplyPow(const Vector& v) {
  if (op_.beta == 0) return math_.Load(v, op_.alpha);
  if (op_.beta == 2) {  // alpha first: the square alone may overflow
    generator_->vmulps(Scratch(0), v, math_.Constant(op_.alpha));
    return generator_->vmulps(v, v, Scratch(0));
  }
  if (op_.beta == -1) {
    math_.Load(Scratch(0), op_.alpha);
    return generator_->vdivps(v, Scratch(0), v);
  }
  if (op_.beta == 0.5f) {
    generator_->vaddps(v, v, math_.Constant(0));  // the power of -0 is 0
    generator_->vsqrtps(v, v);
  } else if (op_.beta != 1) {
    math_.Pow(v, op_.beta, AllScratch());
  }
  if (op_.alpha != 1) generator_->vmulps(v, v, math_.Constant(op_.alpha));
}

}  // namespace tilewire::jit
