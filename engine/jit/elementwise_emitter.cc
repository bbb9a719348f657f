// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets differ most in comparisons: with masks their result is an opmask, else all ones
// in the lanes of a vector. The arithmetic of integers is in integer_elementwise.cc.
#include "engine/jit/elementwise_emitter.h"

#include "engine/jit/extremum.h"
#include "engine/jit/prelu.h"

namespace tilewire::jit {
namespace {

using Function = functions::Elementwise::Function;

// Predicates of vcmpps and of vpcmpd.
constexpr int kEqualTo = 0, kLessThan = 1, kLessOrEqualTo = 2, kUnordered = 3, kNotEqualTo = 4,
              kOrdered = 7;
constexpr uint32_t kOne = 0x3F800000, kInfinity = 0x7F800000, kWithoutSign = 0x7FFFFFFF;

bool IsQuotient(Function function) {
  return function == Function::kDiv || function == Function::kMod ||
         function == Function::kFloorMod;
}

bool HasReal(Function function) {
  switch (function) {
    case Function::kPow:
    case Function::kMod:
    case Function::kFloorMod:
      return false;
    case Function::kReciprocal:
    case Function::kFloor:
    case Function::kCeil:
    case Function::kRound:
    case Function::kTruncate:
    case Function::kSign:
    case Function::kNot:
    case Function::kIsNan:
    case Function::kIsInf:
    case Function::kThresholdedRelu:
    case Function::kSoftsign:
    case Function::kAbs:
    case Function::kNegate:
      return true;
    default:
      return function <= Function::kWhere && !functions::IsBitwise(function);
  }
}

}  // namespace

bool ElementwiseEmitter::Has(const VectorUnit& unit, Function function, const LaneKind& lanes) {
  if (lanes.is_real) return HasReal(function);
  if (IsQuotient(function)) return lanes.bytes == 4 && (lanes.orders_signed() || unit.has_masks());
  // A shift to the right would bring in the sign that narrow integers were extended by.
  if (function == Function::kShiftRight) return !(lanes.is_signed && lanes.is_narrow);
  return function != Function::kPow && functions::TakesIntegers(function);
}

Xbyak::Xmm ElementwiseEmitter::Reals(const Xbyak::Xmm& v) const {
  return is_wide() ? unit_.WithBytes(unit_.bytes() / 2).Vector(v.getIdx()) : v;
}

void ElementwiseEmitter::EmitConstants() {
  const Function function = elementwise_.function;
  if (functions::IsPredicate(function)) {  // of integers, the lowest byte is stored
    unit_.BroadcastBits(g_, Constant(0), lanes_.integer_truths ? 1 : kOne, registers_.spare);
  } else if (function == Function::kReciprocal || function == Function::kSoftsign ||
             (lanes_.is_real && function == Function::kSign)) {
    unit_.BroadcastBits(g_, Constant(0), kOne, registers_.spare);
  }
  if (function == Function::kIsInf)
    unit_.BroadcastBits(g_, Constant(1), kInfinity, registers_.spare);
  if (function == Function::kSoftsign || (lanes_.is_real && function == Function::kAbs))
    unit_.BroadcastBits(g_, Constant(1), kWithoutSign, registers_.spare);
  if (lanes_.is_real && function == Function::kTruncate) {
    unit_.Broadcast(g_, Constant(0), 0x1p63f, registers_.spare);
    unit_.Broadcast(g_, Constant(1), -0x1p63f, registers_.spare);
  }
  if (function == Function::kThresholdedRelu)
    unit_.Broadcast(g_, Constant(0), elementwise_.alpha, registers_.spare);
}

void ElementwiseEmitter::Apply(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others) {
  if (elementwise_.function == Function::kWhere) return Where(value, others);
  if (functions::IsPredicate(elementwise_.function)) return Predicate(value, others);
  lanes_.is_real ? ApplyToReals(value, others) : ApplyToIntegers(value, others);
}

void ElementwiseEmitter::ApplyToReals(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  constexpr int kDown = 1, kUp = 2, kQuiet = 8;  // of VectorUnit::Round()
  const Xbyak::Opmask& mask = registers_.masks[0];
  switch (elementwise_.function) {
    case Function::kAdd:
      return g_->vaddps(v, v, others[0]);
    case Function::kSub:
      return g_->vsubps(v, v, others[0]);
    case Function::kMul:
      return g_->vmulps(v, v, others[0]);
    case Function::kDiv:
      return g_->vdivps(v, v, others[0]);
    case Function::kMax:
    case Function::kMin:
      return EmitExtremum(g_, unit_, elementwise_.function == Function::kMax, v, others[0],
                          Scratch(0), Scratch(1), mask);
    case Function::kPRelu:
      return EmitPRelu(g_, unit_, v, others[0], Scratch(0), Scratch(1), mask);
    case Function::kReciprocal:
      return g_->vdivps(v, Constant(0), v);
    case Function::kFloor:
      return unit_.Round(g_, v, kDown | kQuiet);
    case Function::kCeil:
      return unit_.Round(g_, v, kUp | kQuiet);
    case Function::kRound:
      return unit_.Round(g_, v, kQuiet);
    case Function::kTruncate:
      return Truncate(v);
    default:
      return ApplyToSignOfReals(v);
  }
}

// To a 64-bit integer.
void ElementwiseEmitter::Truncate(const Xbyak::Xmm& v) {
  constexpr int kCut = 3, kQuiet = 8;  // of VectorUnit::Round()
  RealsWhere(v, v, v, kOrdered, v);
  g_->vminps(v, v, Constant(0));
  g_->vmaxps(v, v, Constant(1));
  unit_.Round(g_, v, kCut | kQuiet);
}

void ElementwiseEmitter::ApplyToSignOfReals(const Xbyak::Xmm& v) {
  const Xbyak::Xmm zero = Scratch(0), other = Scratch(1);
  unit_.Zero(g_, zero);
  switch (elementwise_.function) {
    case Function::kNegate:  // -0 of 0
      unit_.BroadcastBits(g_, zero, ~kWithoutSign, registers_.spare);
      return Xor(v, v, zero);
    case Function::kAbs:
      return unit_.And(g_, v, v, Constant(1));
    case Function::kSign:
      RealsWhere(other, v, zero, kLessThan, Constant(0));
      RealsWhere(zero, zero, v, kLessThan, Constant(0));
      g_->vsubps(zero, zero, other);
      RealsWhere(v, v, v, kUnordered, v);  // NaN, or 0
      return g_->vaddps(v, v, zero);
    case Function::kThresholdedRelu:
      return RealsWhere(v, Constant(0), v, kLessThan, v);
    default:  // kSoftsign
      unit_.And(g_, zero, v, Constant(1));
      g_->vaddps(zero, zero, Constant(0));
      return g_->vdivps(v, v, zero);
  }
}

void ElementwiseEmitter::RealsWhere(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b,
                                    int predicate, const Xbyak::Xmm& reals) {
  if (unit_.has_masks()) {
    g_->vcmpps(registers_.masks[0], a, b, predicate);
    return g_->vmovaps(to | registers_.masks[0] | Xbyak::util::T_z, reals);
  }
  const Xbyak::Xmm holds = Scratch(2);
  g_->vcmpps(holds, a, b, predicate);
  g_->vandps(to, holds, reals);
}

void ElementwiseEmitter::Predicate(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  const Xbyak::Xmm truth = Truths(v), ones = Truths(Constant(0));
  if (unit_.has_masks()) {
    CompareToMask(v, others);
    const Xbyak::Xmm to = truth | registers_.masks[0] | Xbyak::util::T_z;
    const bool fills_lanes = is_wide() && lanes_.integer_truths;
    return fills_lanes ? g_->vmovapd(to, ones) : g_->vmovaps(to, ones);
  }
  const bool is_inverted = CompareToVector(v, others);
  if (is_wide() && !lanes_.integer_truths) {  // the low halves of the lanes
    constexpr int kEven = 0x88;
    g_->vextracti128(LowestOf(Scratch(0)), HalfOf(v), 1);
    g_->vshufps(truth, truth, LowestOf(Scratch(0)), kEven);
  }
  is_inverted ? g_->vandnps(truth, truth, ones) : g_->vandps(truth, truth, ones);
}

// The lanes in which the predicate holds.
void ElementwiseEmitter::CompareToMask(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  const Xbyak::Opmask &mask = registers_.masks[0], &other = registers_.masks[1];
  const Function function = elementwise_.function;
  if (function <= Function::kLessOrEqual) {
    const int predicate = function == Function::kEqual  ? kEqualTo
                          : function == Function::kLess ? kLessThan
                                                        : kLessOrEqualTo;
    if (lanes_.is_real) return g_->vcmpps(mask, v, others[0], predicate);
    if (lanes_.orders_signed())
      return is_wide() ? g_->vpcmpq(mask, v, others[0], predicate)
                       : g_->vpcmpd(mask, v, others[0], predicate);
    return is_wide() ? g_->vpcmpuq(mask, v, others[0], predicate)
                     : g_->vpcmpud(mask, v, others[0], predicate);
  }
  if (function == Function::kIsNan) return g_->vcmpps(mask, v, v, kUnordered);
  if (function == Function::kIsInf) {
    unit_.BroadcastBits(g_, Scratch(0), kWithoutSign, registers_.spare);
    unit_.And(g_, v, v, Scratch(0));
    return g_->vcmpps(mask, v, Constant(1), kEqualTo);
  }
  NonZeroToMask(mask, v);
  if (function == Function::kNot) return g_->knotw(mask, mask);
  NonZeroToMask(other, others[0]);
  if (function == Function::kAnd) return g_->kandw(mask, mask, other);
  function == Function::kOr ? g_->korw(mask, mask, other) : g_->kxorw(mask, mask, other);
}

void ElementwiseEmitter::NonZeroToMask(const Xbyak::Opmask& to, const Xbyak::Xmm& v) {
  if (!lanes_.is_real) return is_wide() ? g_->vptestmq(to, v, v) : g_->vptestmd(to, v, v);
  unit_.Zero(g_, Scratch(0));
  g_->vcmpps(to, v, Scratch(0), kNotEqualTo);
}

// The same as all ones in the lanes of `v`, or in the others where the result is true.
bool ElementwiseEmitter::CompareToVector(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  const Function function = elementwise_.function;
  if (function <= Function::kLessOrEqual) return OrderToVector(v, others[0]);
  if (function == Function::kIsNan) {
    g_->vcmpps(v, v, v, kUnordered);
    return false;
  }
  if (function == Function::kIsInf) {
    unit_.BroadcastBits(g_, Scratch(0), kWithoutSign, registers_.spare);
    unit_.And(g_, v, v, Scratch(0));
    g_->vcmpps(v, v, Constant(1), kEqualTo);
    return false;
  }
  ZeroToVector(v, v);
  if (function == Function::kNot) return false;
  const Xbyak::Xmm other = Scratch(1);
  ZeroToVector(other, others[0]);
  if (function == Function::kXor) {
    Xor(v, v, other);
    return false;
  }
  function == Function::kAnd ? unit_.Or(g_, v, v, other) : unit_.And(g_, v, v, other);
  return true;
}

bool ElementwiseEmitter::OrderToVector(const Xbyak::Xmm& v, const Xbyak::Xmm& other) {
  const Function function = elementwise_.function;
  if (lanes_.is_real) {
    g_->vcmpps(v, v, other,
               function == Function::kEqual  ? kEqualTo
               : function == Function::kLess ? kLessThan
                                             : kLessOrEqualTo);
    return false;
  }
  if (function == Function::kEqual) {
    EqualLanes(v, v, other);
    return false;
  }
  if (function == Function::kLess) {
    GreaterOf(v, other, v);
    return false;
  }
  GreaterOf(v, v, other);
  return true;
}

void ElementwiseEmitter::ZeroToVector(const Xbyak::Xmm& to, const Xbyak::Xmm& v) {
  const Xbyak::Xmm zero = Scratch(0);
  unit_.Zero(g_, zero);
  lanes_.is_real ? g_->vcmpps(to, v, zero, kEqualTo) : EqualLanes(to, v, zero);
}

void ElementwiseEmitter::WhereByMask(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  const Xbyak::Opmask& mask = registers_.masks[0];
  if (lanes_.integer_truths) {
    is_wide() ? g_->vptestmq(mask, v, v) : g_->vptestmd(mask, v, v);
  } else {
    g_->vcmpps(mask, Reals(v), Reals(Scratch(0)), kNotEqualTo);
  }
  is_wide() ? g_->vblendmpd(v | mask, others[1], others[0])
            : g_->vblendmps(v | mask, others[1], others[0]);
}

void ElementwiseEmitter::Where(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  const Xbyak::Xmm condition = Reals(v), zero = Reals(Scratch(0));
  unit_.Zero(g_, Scratch(0));
  if (unit_.has_masks()) return WhereByMask(v, others);
  if (lanes_.integer_truths) {  // ones where it is false
    EqualLanes(v, v, Scratch(0));
    return is_wide() ? g_->vblendvpd(v, others[0], others[1], v)
                     : g_->vblendvps(v, others[0], others[1], v);
  }
  g_->vcmpps(condition, condition, zero, kNotEqualTo);
  if (!is_wide()) return g_->vblendvps(v, others[1], others[0], v);
  g_->vpmovsxdq(v, LowestOf(v));
  g_->vblendvpd(v, others[1], others[0], v);
}

}  // namespace tilewire::jit
