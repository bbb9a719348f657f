// SPDX-License-Identifier: Apache-2.0
//
// The derivatives are those of functions.inc in f32. Where one follows from the function's value,
// and x is what is read, the function's own code computes the value first. Where one is itself a
// function that has code, such as a power's, that is all there is.
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/vector_math.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire::eltwise {
namespace {

using functions::Function;
using Predicate = jit::VectorMath::Predicate;

// Functions whose derivative is emitted from their value.
bool HasCodeOfResult(Function function) {
  switch (function) {
    case Function::kTanh:
    case Function::kElu:
    case Function::kSqrt:
    case Function::kSoftRelu:
    case Function::kLogistic:
    case Function::kExp:
      return true;
    default:
      return false;
  }
}

// Functions whose derivative is emitted from x, or from the value in its place where it follows
// from that.
bool HasCodeOfSource(Function function) {
  switch (function) {
    case Function::kRelu:
    case Function::kLinear:
    case Function::kBoundedRelu:
    case Function::kClip:
    case Function::kSquare:
    case Function::kAbs:
    case Function::kGelu:
    case Function::kGeluErf:
    case Function::kSwish:
    case Function::kHardSigmoid:
    case Function::kHardSwish:
    case Function::kMish:
    case Function::kSoftsign:
    case Function::kThresholdedRelu:
    case Function::kShrink:
    case Function::kErf:
      return true;
    default:
      return false;
  }
}

// The function that is the derivative at x, where it has code and its parameters are f32.
std::optional<EltwiseOp> SlopeFunction(const EltwiseOp& op) {
  switch (op.function) {
    case Function::kLog:
      return EltwiseOp{Function::kReciprocal};
    case Function::kReciprocal:
      return EltwiseOp{Function::kPow, -1, -2};
    case Function::kNegate:
      return EltwiseOp{Function::kPow, -1, 0};
    case Function::kPow: {
      const float factor = op.alpha * op.beta, exponent = op.beta - 1;
      if (factor == 0) return EltwiseOp{Function::kPow, 0, 0};  // also where a power is infinite
      if (!std::isfinite(factor) || static_cast<double>(op.beta) - 1 != exponent)
        return std::nullopt;
      return EltwiseOp{Function::kPow, factor, exponent};
    }
    default:
      return std::nullopt;
  }
}

bool HasCode(const EltwiseOp& op) {
  return HasCodeOfResult(op.function) || HasCodeOfSource(op.function) ||
         SlopeFunction(op).has_value();
}

class SlopeGenerator final : public DenseRunGenerator {
 public:
  SlopeGenerator(absl::string_view name, const EltwiseOp& op, bool reads_result,
                 const VectorUnit& unit)
      : DenseRunGenerator(
            name, {.unit = unit, .srcs = {DataType::kF32, DataType::kF32}, .dst = DataType::kF32}),
        op_(op),
        is_function_(SlopeFunction(op).has_value()),
        math_(this, unit, rax, k1) {
    if (!is_function_ && (reads_result || !HasCodeOfResult(op.function))) return;
    value_ = std::make_unique<jit::EltwiseEmitter>(
        this, unit, is_function_ ? *SlopeFunction(op) : op,
        jit::EltwiseEmitter::Registers{.table = rax, .scratch = {4, 5, 6, 7, 8}, .mask = k1});
  }

 private:
  using Math = jit::VectorMath;

  void EmitVectors(int vectors) override {
    std::vector<int> registers;
    for (int v = 0; v < vectors; ++v) {
      Load(0, v, Value(v));
      registers.push_back(v);
    }
    if (value_ != nullptr) {
      value_->LoadTable();
      value_->Apply(registers);
    }
    math_.LoadTable();
    for (int v = 0; v < vectors && !is_function_; ++v) {
      if (HasCodeOfResult(op_.function)) {
        EmitSlopeOfResult(Value(v));
      } else {
        EmitSlopeOfSource(Value(v));
      }
    }
    for (int v = 0; v < vectors; ++v) {
      Load(1, v, Scratch(0));
      vmulps(Value(v), Value(v), Scratch(0));
    }
  }

  void EmitTables() override {
    if (value_ != nullptr) value_->EmitTable();
    math_.EmitTable();
  }

  void EmitSlopeOfResult(const Xbyak::Xmm& y) {
    switch (op_.function) {
      case Function::kTanh:  // (1 - y) (1 + y)
        math_.Load(Scratch(0), 1);
        vsubps(Scratch(1), Scratch(0), y);
        vaddps(y, y, Scratch(0));
        return vmulps(y, y, Scratch(1));
      case Function::kLogistic:  // y (1 - y)
        math_.Load(Scratch(0), 1);
        vsubps(Scratch(1), Scratch(0), y);
        return vmulps(y, y, Scratch(1));
      case Function::kElu:
        vmovaps(Scratch(1), y);
        vaddps(y, y, math_.Constant(op_.alpha));
        return TakeOneWherePositive(y, Scratch(1));
      case Function::kSqrt:
        math_.Load(Scratch(1), 0.5f);
        vdivps(Scratch(1), Scratch(1), y);
        math_.KeepWhere(Scratch(1), y, Predicate::kGreater, math_.Constant(0), Scratch(0));
        return vmovaps(y, Scratch(1));
      case Function::kSoftRelu:  // 1 - e^-y
        Negate(y);
        math_.ExpMinus1(y, Scratch(0), Scratch(1));
        return Negate(y);
      default:  // exp is its own derivative
        return;
    }
  }

  void EmitSlopeOfSource(const Xbyak::Xmm& x) {
    switch (op_.function) {
      case Function::kRelu:
        vmovaps(Scratch(1), x);
        math_.Load(x, op_.alpha);
        return TakeOneWherePositive(x, Scratch(1));
      case Function::kLinear:
        return math_.Load(x, op_.alpha);
      case Function::kBoundedRelu:
        return TakeInside(x, x, 0, op_.alpha, 1);
      case Function::kClip:
        return TakeInside(x, x, op_.alpha, op_.beta, 1);
      case Function::kSquare:
        return vaddps(x, x, x);
      case Function::kAbs:
        return EmitSign(x);
      case Function::kHardSigmoid:
        Line(Scratch(2), x, op_.alpha);
        return TakeInside(x, Scratch(2), 0, 1, op_.alpha);
      case Function::kHardSwish:
        return EmitHardSwish(x);
      case Function::kSwish:
        vmulps(Scratch(4), x, math_.Constant(op_.alpha));
        return EmitLogisticSlope(x, /*inner=*/Scratch(4));
      case Function::kGelu:
        return EmitGelu(x);
      case Function::kGeluErf:
        return EmitGeluErf(x);
      default:
        return EmitRareSlope(x);
    }
  }

  void EmitRareSlope(const Xbyak::Xmm& x) {
    switch (op_.function) {
      case Function::kMish:
        return EmitMish(x);
      case Function::kSoftsign:  // 1 / (1 + |x|)^2
        math_.Abs(x);
        vaddps(Scratch(1), x, math_.Constant(1));
        vmulps(Scratch(1), Scratch(1), Scratch(1));
        math_.Load(Scratch(0), 1);
        return vdivps(x, Scratch(0), Scratch(1));
      case Function::kThresholdedRelu:
        math_.Load(Scratch(1), 1);
        math_.KeepWhere(Scratch(1), x, Predicate::kGreater, math_.Constant(op_.alpha), Scratch(0));
        return vmovaps(x, Scratch(1));
      case Function::kShrink:
        math_.Load(Scratch(1), 1);
        math_.KeepWhere(Scratch(1), x, Predicate::kGreater, math_.Constant(op_.alpha), Scratch(0));
        math_.Load(Scratch(2), 1);
        math_.TakeWhere(Scratch(1), x, Predicate::kLess, math_.Constant(-op_.alpha), Scratch(2),
                        Scratch(0));
        return vmovaps(x, Scratch(1));
      default:  // 2 / sqrt(pi) e^(-x^2) of erf
        vmulps(x, x, x);
        Negate(x);
        math_.AtLeast(x, -100, Scratch(0));
        math_.Exp(x, Scratch(0), Scratch(1));
        return vmulps(x, x, math_.Constant(static_cast<float>(M_2_SQRTPI)));
    }
  }

  // With e = e^x, n = e (e + 2), t = tanh(log(1 + e)) = n / (n + 2) and d = 1 - t = 2 / (n + 2):
  // t + x d (1 + t) e / (1 + e). Beyond 20 t is 1, and d has no part in the sum.
  void EmitMish(const Xbyak::Xmm& x) {
    const Xbyak::Xmm e = Scratch(2), t = Scratch(3), d = Scratch(4);
    vmovaps(e, x);
    math_.AtMost(e, 20, Scratch(0));
    math_.AtLeast(e, -100, Scratch(0));
    math_.Exp(e, Scratch(0), Scratch(1));
    vaddps(t, e, math_.Constant(2));
    vmulps(t, t, e);
    vaddps(d, t, math_.Constant(2));
    math_.Load(Scratch(0), 2);
    vdivps(d, Scratch(0), d);
    vmulps(t, t, d);
    vmulps(t, t, math_.Constant(0.5f));
    vaddps(Scratch(1), e, math_.Constant(1));
    vdivps(e, e, Scratch(1));
    vmulps(x, x, d);
    vmulps(x, x, e);
    vaddps(Scratch(1), t, math_.Constant(1));
    vfmadd213ps(x, Scratch(1), t);
  }

  // Where the line is inside 0 to 1 its sum with alpha x, which is 2 alpha x + beta; else 0 or 1.
  void EmitHardSwish(const Xbyak::Xmm& x) {
    Line(Scratch(2), x, op_.alpha);
    Line(x, x, 2 * op_.alpha);
    math_.KeepWhere(x, Scratch(2), Predicate::kGreater, math_.Constant(0), Scratch(0));
    math_.Load(Scratch(1), 1);
    math_.TakeWhere(x, Scratch(2), Predicate::kGreater, math_.Constant(std::nextafter(1.0f, 0.0f)),
                    Scratch(1), Scratch(0));
  }

  // s + u s (1 - s) in the place of x, where s = logistic(u); u is overwritten.
  void EmitLogisticSlope(const Xbyak::Xmm& x, const Xbyak::Xmm& u) {
    vmovaps(x, u);
    math_.Logistic(x, Scratch(0), Scratch(1), Scratch(2));
    EmitSumWithCurve(x, u);
  }

  // s (1 + w (1 - s)), for s in the register x.
  void EmitSumWithCurve(const Xbyak::Xmm& s, const Xbyak::Xmm& w) {
    math_.Load(Scratch(0), 1);
    vsubps(Scratch(1), Scratch(0), s);
    vfmadd213ps(w, Scratch(1), Scratch(0));
    vmulps(s, s, w);
  }

  // With u = x (c + d x^2) and s = logistic(u): s (1 + x (c + 3 d x^2) (1 - s)).
  void EmitGelu(const Xbyak::Xmm& x) {
    const double c = 2 * std::sqrt(2 / M_PI), d = c * 0.044715;
    const Xbyak::Xmm square = Scratch(3), w = Scratch(4);
    vmulps(square, x, x);
    math_.Load(w, static_cast<float>(3 * d));
    vfmadd213ps(w, square, math_.Constant(static_cast<float>(c)));
    vmulps(w, w, x);
    math_.Load(Scratch(0), static_cast<float>(d));
    vfmadd213ps(square, Scratch(0), math_.Constant(static_cast<float>(c)));
    vmulps(x, x, square);
    math_.Logistic(x, Scratch(0), Scratch(1), Scratch(2));
    EmitSumWithCurve(x, w);
  }

  // (1 + erf(x / sqrt(2))) / 2 + x e^(-x^2 / 2) / sqrt(2 pi).
  void EmitGeluErf(const Xbyak::Xmm& x) {
    const Xbyak::Xmm curve = Scratch(3), power = Scratch(4);
    vmovaps(curve, x);
    vmulps(power, x, x);
    vmulps(power, power, math_.Constant(-0.5f));
    math_.AtLeast(power, -100, Scratch(0));
    math_.Exp(power, Scratch(0), Scratch(1));
    vmulps(power, power, math_.Constant(static_cast<float>(1 / std::sqrt(2 * M_PI))));
    vmulps(curve, curve, power);
    vmulps(x, x, math_.Constant(static_cast<float>(M_SQRT1_2)));
    math_.Erf(x, Scratch(0), Scratch(1), Scratch(2));
    math_.Load(Scratch(0), 0.5f);
    vfmadd213ps(x, Scratch(0), Scratch(0));
    vaddps(x, x, curve);
  }

  // The sign of x as 1, 0 or -1.
  void EmitSign(const Xbyak::Xmm& x) {
    unit().And(this, Scratch(1), x, math_.ConstantBits(0x80000000));
    unit().Or(this, Scratch(1), Scratch(1), math_.Constant(1));
    math_.KeepWhere(Scratch(1), x, Predicate::kUnequal, math_.Constant(0), Scratch(0));
    vmovaps(x, Scratch(1));
  }

  // to = factor x + beta.
  void Line(const Xbyak::Xmm& to, const Xbyak::Xmm& x, float factor) {
    math_.Load(Scratch(0), factor);
    if (to.getIdx() != x.getIdx()) vmovaps(to, x);
    vfmadd213ps(to, Scratch(0), math_.Constant(op_.beta));
  }

  // to = low < x < high ? value : 0.
  void TakeInside(const Xbyak::Xmm& to, const Xbyak::Xmm& x, float low, float high, float value) {
    math_.Load(Scratch(1), value);
    math_.KeepWhere(Scratch(1), x, Predicate::kGreater, math_.Constant(low), Scratch(0));
    math_.KeepWhere(Scratch(1), x, Predicate::kLess, math_.Constant(high), Scratch(0));
    vmovaps(to, Scratch(1));
  }

  // v = x > 0 ? 1 : v.
  void TakeOneWherePositive(const Xbyak::Xmm& v, const Xbyak::Xmm& x) {
    math_.Load(Scratch(2), 1);
    math_.TakeWhere(v, x, Predicate::kGreater, math_.Constant(0), Scratch(2), Scratch(0));
  }

  void Negate(const Xbyak::Xmm& v) {
    math_.Load(Scratch(0), 0);
    vsubps(v, Scratch(0), v);
  }

  Xbyak::Xmm Scratch(int i) const { return Vector(4 + i); }  // 0 to 4

  const EltwiseOp op_;
  const bool is_function_;  // of x, which value_ computes
  jit::VectorMath math_;
  std::unique_ptr<jit::EltwiseEmitter> value_;  // null: the value is read, or is not needed
};

// Whether what pads the gradients, 0 times f'(0), is 0 without a sign.
bool StaysZero(const EltwiseDesc& desc) {
  const double slope = ReadsResult(desc) ? functions::EltwiseDerivativeOfResult(desc.op, 0)
                                         : functions::EltwiseDerivative(desc.op, 0);
  return std::isfinite(slope) && !std::signbit(slope);
}

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveDenseBackward(const Request<EltwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(EltwiseDesc resolved, ResolveReferenceBackward(request));
  const MemoryDesc& saved = SavedTensor(resolved);
  if (resolved.diff_src != saved || resolved.diff_dst != saved) {
    return Unimplemented("layouts of the tensors differ");
  }
  if (!saved.IsDense()) return Unimplemented("not dense");
  const Function function = resolved.op.function;
  if (!HasCode(resolved.op)) {
    return Unimplemented("the derivative of ", AlgorithmName(function), " has no code");
  }
  if (HasCodeOfResult(function) && !functions::HasResultSlope(resolved.op)) {
    return Unimplemented("the derivative does not follow from the value: alpha ",
                         resolved.op.alpha);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseBackward(
    const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<SlopeGenerator>(request.facts.name, desc.op, ReadsResult(desc),
                                                     VectorUnit::Of(request.facts.isa)));
  return MakeDensePrimitive(BackwardInfoOf(request), StaysZero(desc), std::move(generator));
}

}  // namespace tilewire::eltwise
