// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets differ most in comparisons: with masks their result is an opmask, else all ones
// in the lanes of a vector. The arithmetic of integers is in integer_elementwise.cc.
#include "engine/jit/elementwise_emitter.h"

#include <iterator>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/jit/extremum.h"
#include "engine/jit/prelu.h"

namespace tilewire::jit {
namespace {

using functions::Function;

// Predicates of vcmpps and of vpcmpd.
constexpr int kEqualTo = 0, kLessThan = 1, kLessOrEqualTo = 2, kNotEqualTo = 4;
constexpr uint32_t kOne = 0x3F800000;

bool IsQuotient(Function function) {
  return function == Function::kDiv || function == Function::kMod ||
         function == Function::kFloorMod;
}

bool IsOrder(Function function) {
  return function == Function::kEqual || function == Function::kLess ||
         function == Function::kLessOrEqual;
}

}  // namespace

bool ElementwiseEmitter::Has(const VectorUnit& unit, Function function, const LaneKind& lanes) {
  if (lanes.is_real) return functions::HasCode(function);
  if (IsQuotient(function)) return lanes.bytes == 4 && (lanes.orders_signed() || unit.has_masks());
  // A shift to the right would bring in the sign that narrow integers were extended by.
  if (function == Function::kShiftRight) return !(lanes.is_signed && lanes.is_narrow);
  return function != Function::kPower && functions::TakesIntegers(function);
}

ElementwiseEmitter::ElementwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                                       const functions::Elementwise& elementwise,
                                       const LaneKind& lanes, const Registers& registers)
    : g_(generator), unit_(unit), elementwise_(elementwise), lanes_(lanes), registers_(registers) {
  if (!lanes.is_real || !functions::IsOfOneReal(elementwise.function)) return;
  std::vector<int> scratch(std::begin(registers.scratch), std::end(registers.scratch));
  scratch.insert(scratch.end(), std::begin(registers.constants), std::end(registers.constants));
  of_one_real_.emplace(
      generator, unit, elementwise,
      EltwiseEmitter::Registers{
          .table = registers.spare, .scratch = std::move(scratch), .mask = registers.masks[0]});
}

void ElementwiseEmitter::EmitTable() {
  if (of_one_real_) of_one_real_->EmitTable();
}

Xbyak::Xmm ElementwiseEmitter::Reals(const Xbyak::Xmm& v) const {
  return is_wide() ? unit_.WithBytes(unit_.bytes() / 2).Vector(v.getIdx()) : v;
}

void ElementwiseEmitter::EmitConstants() {
  if (of_one_real_ || !functions::IsPredicate(elementwise_.function)) return;
  // Where truths are integers, their lowest byte is stored.
  unit_.BroadcastBits(g_, Constant(0), lanes_.integer_truths ? 1 : kOne, registers_.spare);
}

void ElementwiseEmitter::Apply(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others) {
  if (of_one_real_) return ApplyToOneReal(value);
  if (elementwise_.function == Function::kWhere) return Where(value, others);
  if (functions::IsPredicate(elementwise_.function)) return Predicate(value, others);
  lanes_.is_real ? ApplyToReals(value, others) : ApplyToIntegers(value, others);
}

void ElementwiseEmitter::ApplyToOneReal(const Xbyak::Xmm& v) {
  of_one_real_->LoadTable();
  of_one_real_->Apply({v.getIdx()});
  if (functions::IsPredicate(elementwise_.function) && lanes_.integer_truths) g_->vcvttps2dq(v, v);
}

void ElementwiseEmitter::ApplyToReals(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
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
    default:
      TILEWIRE_CHECK(false, "a function without code");
  }
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
  if (IsOrder(function)) {
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
  if (IsOrder(function)) return OrderToVector(v, others[0]);
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
