// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/eltwise_emitter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace tilewire::jit {

using Algorithm = functions::EltwiseAlgorithm;

int EltwiseEmitter::ScratchCount(functions::EltwiseAlgorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kSquare:
    case Algorithm::kAbs:
    case Algorithm::kRound:
    case Algorithm::kFloor:
    case Algorithm::kCeil:
      return 0;
    case Algorithm::kRelu:
    case Algorithm::kSqrt:
    case Algorithm::kLinear:
    case Algorithm::kBoundedRelu:
    case Algorithm::kClip:
    case Algorithm::kHardSigmoid:
      return 1;
    case Algorithm::kExp:
    case Algorithm::kHardSwish:
      return 2;
    case Algorithm::kTanh:
    case Algorithm::kElu:
    case Algorithm::kSoftRelu:
    case Algorithm::kLogistic:
      return 3;
    case Algorithm::kGelu:
    case Algorithm::kSwish:
    case Algorithm::kMish:
      return 4;
    case Algorithm::kGeluErf:
    case Algorithm::kLog:
    case Algorithm::kPow:
      return 5;
  }
  return 0;
}

EltwiseEmitter::EltwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                               const functions::EltwiseOp& op, Registers registers)
    : generator_(generator),
      op_(op),
      registers_(std::move(registers)),
      math_(generator, unit, registers_.table, registers_.mask) {}

void EltwiseEmitter::LoadTable() { math_.LoadTable(); }
void EltwiseEmitter::EmitTable() { math_.EmitTable(); }

void EltwiseEmitter::Apply(absl::Span<const int> vector_registers) {
  if (op_.algorithm == Algorithm::kGeluErf) return ApplyGeluErf(vector_registers);
  for (int index : vector_registers) ApplyTo(math_.unit().Vector(index));
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

void EltwiseEmitter::ApplyTo(const Vector& v) {
  switch (op_.algorithm) {
    case Algorithm::kRelu:
      return ApplyRelu(v);
    case Algorithm::kTanh:
      return math_.Tanh(v, Scratch(0), Scratch(1), Scratch(2));
    case Algorithm::kElu:
      return ApplyElu(v);
    case Algorithm::kSquare:
      return generator_->vmulps(v, v, v);
    case Algorithm::kAbs:
      return math_.Abs(v);
    case Algorithm::kSqrt:
      math_.AtLeast(v, 0, Scratch(0));
      return generator_->vsqrtps(v, v);
    case Algorithm::kLinear:
      return ApplyLine(v);
    case Algorithm::kBoundedRelu:
      return ApplyClamp(v, 0, op_.alpha);
    case Algorithm::kSoftRelu:
      return math_.SoftPlus(v, Scratch(0), Scratch(1), Scratch(2));
    case Algorithm::kLogistic:
      return math_.Logistic(v, Scratch(0), Scratch(1), Scratch(2));
    case Algorithm::kExp:
      return math_.Exp(v, Scratch(0), Scratch(1));
    case Algorithm::kGelu:
      return ApplyGelu(v);
    case Algorithm::kClip:
      return ApplyClamp(v, op_.alpha, op_.beta);
    case Algorithm::kHardSigmoid:
      ApplyLine(v);
      return ApplyClamp(v, 0, 1);
    case Algorithm::kSwish:
      return ApplySwish(v);
    case Algorithm::kHardSwish:
      return ApplyHardSwish(v);
    case Algorithm::kGeluErf:
      return;  // ApplyGeluErf()
    case Algorithm::kMish:
      return math_.Mish(v, Scratch(0), Scratch(1), Scratch(2), Scratch(3));
    case Algorithm::kLog:
      return math_.Log(v, AllScratch());
    case Algorithm::kPow:
      return ApplyPow(v);
    case Algorithm::kRound:
      return math_.Round(v, VectorMath::Rounding::kNearest);
    case Algorithm::kFloor:
      return math_.Round(v, VectorMath::Rounding::kDown);
    case Algorithm::kCeil:
      return math_.Round(v, VectorMath::Rounding::kUp);
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

// x logistic(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): see functions::EltwiseScalar.
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
