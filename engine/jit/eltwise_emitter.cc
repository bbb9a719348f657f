// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/eltwise_emitter.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/check.h"

namespace tilewire::jit {

using functions::Function;
using Predicate = VectorMath::Predicate;

// The table of code, by function.
struct EltwiseEmitter::Codes {
  struct Code {
    int scratch;
    void (*apply)(EltwiseEmitter& e, const Vector& v);  // null where there is none
  };
  static constexpr Code kCodes[] = {
#define CODE \
  {}
#define NONE(why) \
  {}
#define VECTORS(scratch, ...)                                   \
  {                                                             \
    scratch, [](EltwiseEmitter& e, const Vector& v) {           \
      [[maybe_unused]] VectorMath& math = e.math_;              \
      [[maybe_unused]] Xbyak::CodeGenerator& g = *e.generator_; \
      [[maybe_unused]] const Scratch s = e.ScratchFrom(0);      \
      [[maybe_unused]] const float alpha = e.op_.alpha;         \
      [[maybe_unused]] const float beta = e.op_.beta;           \
      __VA_ARGS__;                                              \
    }                                                           \
  }
#define TILEWIRE_FUNCTION(name, text, sources, gives, reals, integers, code, slope) code,
#include "engine/functions/functions.inc"
  };
  static constexpr const Code& Of(Function function) { return kCodes[static_cast<int>(function)]; }

  static constexpr bool AreComplete() {
    for (int i = 0; i < functions::kRealFunctionCount; ++i) {
      const auto function = static_cast<Function>(i);
      if (functions::HasCode(function) != (Of(function).apply != nullptr)) return false;
    }
    return true;
  }
};

int EltwiseEmitter::ScratchCount(Function function) { return Codes::Of(function).scratch; }

EltwiseEmitter::EltwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                               const functions::EltwiseOp& op, Registers registers)
    : generator_(generator),
      op_(op),
      registers_(std::move(registers)),
      math_(generator, unit, registers_.table, registers_.mask) {
  static_assert(Codes::AreComplete(), "a function of one number is marked CODE: write VECTORS");
  TILEWIRE_CHECK(Codes::Of(op.function).apply != nullptr, "a function without code");
  TILEWIRE_CHECK(static_cast<int>(registers_.scratch.size()) >= ScratchCount(op.function),
                 "too few scratch registers");
}

EltwiseEmitter::Scratch EltwiseEmitter::ScratchFrom(size_t i) const {
  Scratch scratch;
  for (Vector& s : scratch) {
    if (i < registers_.scratch.size()) s = math_.unit().Vector(registers_.scratch[i++]);
  }
  return scratch;
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
  constexpr size_t kScratch = std::tuple_size_v<Scratch>;
  const size_t at_once = std::min(kMostAtOnce, registers_.scratch.size() / kScratch);
  for (size_t i = 0; i < vector_registers.size(); i += at_once) {
    std::vector<Vector> vs;
    std::vector<Scratch> scratch;
    for (int index : vector_registers.subspan(i, at_once)) {
      scratch.push_back(ScratchFrom(vs.size() * kScratch));
      vs.push_back(math_.unit().Vector(index));
    }
    math_.GeluErf(vs, scratch);
  }
}

void EltwiseEmitter::ApplyRelu(const Vector& v, const Scratch& s) {
  if (op_.alpha == 0) return math_.AtLeast(v, 0, s[0]);
  generator_->vmulps(s[0], v, math_.Constant(op_.alpha));
  math_.TakeWhereNegative(v, v, s[0]);
}

void EltwiseEmitter::ApplyElu(const Vector& v, const Scratch& s) {
  const Vector x = s[2];
  generator_->vmovaps(x, v);
  math_.AtMost(v, 0, s[0]);
  math_.ExpMinus1(v, s[0], s[1]);
  generator_->vmulps(s[0], v, math_.Constant(op_.alpha));
  math_.TakeWhereNegative(x, x, s[0]);
  generator_->vmovaps(v, x);
}

void EltwiseEmitter::ApplySelu(const Vector& v, const Scratch& s) {
  const Vector scaled = s[2], x = s[0];
  generator_->vmovaps(scaled, v);
  math_.AtMost(v, 0, s[0]);
  math_.ExpMinus1(v, s[0], s[1]);
  generator_->vmulps(v, v, math_.Constant(op_.beta * op_.alpha));
  generator_->vmovaps(x, scaled);
  generator_->vmulps(scaled, scaled, math_.Constant(op_.beta));
  math_.TakeWhere(v, x, Predicate::kGreater, math_.Constant(0), scaled, s[1]);
}

void EltwiseEmitter::ApplyCelu(const Vector& v, const Scratch& s) {
  const Vector x = s[2];
  generator_->vmovaps(x, v);
  math_.Load(s[0], op_.alpha);
  generator_->vdivps(v, v, s[0]);
  if (op_.alpha > 0) {
    math_.AtMost(v, 0, s[0]);
    math_.ExpMinus1(v, s[0], s[1]);
  } else {
    math_.ExpMinus1OfAny(v, s[0], s[1]);
  }
  generator_->vmulps(v, v, math_.Constant(op_.alpha));
  math_.AtMost(v, 0, s[0]);
  math_.AtLeast(x, 0, s[0]);
  generator_->vaddps(v, v, x);
}

void EltwiseEmitter::ApplyShrink(const Vector& v, const Scratch& s) {
  const Vector x = s[0], raised = s[1], spare = s[2];
  generator_->vmovaps(x, v);
  generator_->vsubps(v, v, math_.Constant(op_.beta));
  math_.KeepWhere(v, x, Predicate::kGreater, math_.Constant(op_.alpha), spare);
  generator_->vaddps(raised, x, math_.Constant(op_.beta));
  math_.TakeWhere(v, x, Predicate::kLess, math_.Constant(-op_.alpha), raised, spare);
}

// 1 with x's sign where x is not 0, and NaN.
void EltwiseEmitter::ApplySign(const Vector& v, const Scratch& s) {
  const Vector one = s[0], spare = s[1];
  const VectorUnit& unit = math_.unit();
  unit.And(generator_, one, v, math_.ConstantBits(0x80000000));
  unit.Or(generator_, one, one, math_.Constant(1));
  math_.KeepWhere(one, v, Predicate::kUnequal, math_.Constant(0), spare);
  math_.KeepWhere(v, v, Predicate::kUnordered, v, spare);
  generator_->vaddps(v, v, one);
}

void EltwiseEmitter::ApplyTruncate(const Vector& v, const Scratch& s) {
  math_.KeepWhere(v, v, Predicate::kOrdered, v, s[0]);
  math_.Clamp(v, -0x1p63f, 0x1p63f, s[0]);
  math_.Round(v, VectorMath::Rounding::kCut);
}

// The sum with a large number loses the bits that are not to stay.
void EltwiseEmitter::ApplyRoundBits(const Vector& v, const Scratch& s) {
  const Vector sign = s[0], large = s[1];
  const VectorUnit& unit = math_.unit();
  unit.And(generator_, sign, v, math_.ConstantBits(0x80000000));
  math_.Abs(v);
  math_.AtMost(v, 0x1p100f, s[2]);
  unit.And(generator_, large, v, math_.ConstantBits(0x7F800000));  // the power of two below v
  math_.AtLeast(large, op_.beta, s[2]);
  generator_->vmulps(large, large, math_.Constant(op_.alpha));
  generator_->vaddps(v, v, large);
  generator_->vsubps(v, v, large);
  unit.Or(generator_, v, v, sign);
}

void EltwiseEmitter::ApplyScaledTanh(const Vector& v, const Scratch& s) {
  generator_->vmulps(v, v, math_.Constant(op_.beta));
  math_.Tanh(v, s[0], s[1], s[2]);
  generator_->vmulps(v, v, math_.Constant(op_.alpha));
}

void EltwiseEmitter::ApplyTruth(const Vector& v, const Scratch& s, Predicate predicate,
                                const Xbyak::Operand& b) {
  const Vector one = s[0];
  math_.Load(one, 1);
  math_.KeepWhere(one, v, predicate, b, s[1]);
  generator_->vmovaps(v, one);
}

void EltwiseEmitter::ApplyLine(const Vector& v, const Scratch& s) {
  math_.Load(s[0], op_.alpha);
  generator_->vfmadd213ps(v, s[0], math_.Constant(op_.beta));
}

void EltwiseEmitter::ApplyHardSwish(const Vector& v, const Scratch& s) {
  generator_->vmovaps(s[1], v);
  ApplyLine(v, s);
  math_.Clamp(v, 0, 1, s[0]);
  generator_->vmulps(v, v, s[1]);
}

void EltwiseEmitter::ApplySwish(const Vector& v, const Scratch& s) {
  generator_->vmovaps(s[3], v);
  if (op_.alpha != 1) generator_->vmulps(v, v, math_.Constant(op_.alpha));
  math_.Logistic(v, s[0], s[1], s[2]);
  generator_->vmulps(v, v, s[3]);
}

// x logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): see GeluByTanh() in functions/function.cc.
void EltwiseEmitter::ApplyGelu(const Vector& v, const Scratch& s) {
  const double twice_root = 2 * std::sqrt(2 / M_PI);
  generator_->vmovaps(s[3], v);
  generator_->vmulps(v, v, v);
  math_.Load(s[0], static_cast<float>(twice_root * 0.044715));
  generator_->vfmadd213ps(v, s[0], math_.Constant(static_cast<float>(twice_root)));
  generator_->vmulps(v, v, s[3]);
  math_.Logistic(v, s[0], s[1], s[2]);
  generator_->vmulps(v, v, s[3]);
}

void EltwiseEmitter::ApplyPow(const Vector& v, const Scratch& s) {
  if (op_.beta == 0) return math_.Load(v, op_.alpha);
  if (op_.beta == 2) {  // alpha first: the square alone may overflow
    generator_->vmulps(s[0], v, math_.Constant(op_.alpha));
    return generator_->vmulps(v, v, s[0]);
  }
  if (op_.beta == -1) {
    math_.Load(s[0], op_.alpha);
    return generator_->vdivps(v, s[0], v);
  }
  if (op_.beta == 0.5f) {
    generator_->vaddps(v, v, math_.Constant(0));  // the power of -0 is 0
    generator_->vsqrtps(v, v);
  } else if (op_.beta != 1) {
    math_.Pow(v, op_.beta, s);
  }
  if (op_.alpha != 1) generator_->vmulps(v, v, math_.Constant(op_.alpha));
}

}  // namespace tilewire::jit
