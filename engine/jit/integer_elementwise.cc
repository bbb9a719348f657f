// SPDX-License-Identifier: Apache-2.0
//
// Quotients of integers are cut quotients of real numbers: f32 hold what 16 bits divide, f64 what
// 32 bits do. The rounded quotient does not reach the next integer, which is at least 1 / divisor
// away: that is more than the rounding error of a quotient whose dividend has fewer bits than a
// significand.
#include "engine/base/check.h"
#include "engine/jit/elementwise_emitter.h"

namespace tilewire::jit {

void ElementwiseEmitter::ApplyToIntegers(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others) {
  switch (elementwise_.function) {
    case Function::kAdd:
      return is_wide() ? g_->vpaddq(v, v, others[0]) : g_->vpaddd(v, v, others[0]);
    case Function::kSub:
      return Subtract(v, v, others[0]);
    case Function::kMul:
      return Multiply(v, v, others[0]);
    case Function::kMax:
    case Function::kMin:
      return Extremum(v, others[0]);
    case Function::kPRelu:
      return PRelu(v, others[0]);
    case Function::kBitAnd:
      return unit_.And(g_, v, v, others[0]);
    case Function::kBitOr:
      return unit_.Or(g_, v, v, others[0]);
    case Function::kBitXor:
      return Xor(v, v, others[0]);
    case Function::kShiftLeft:
    case Function::kShiftRight:
      return Shift(v, others[0]);
    case Function::kDiv:
    case Function::kMod:
    case Function::kFloorMod:
      return Divide(v, others[0]);
    default:
      return ApplyToOneInteger(v);
  }
}

void ElementwiseEmitter::ApplyToOneInteger(const Xbyak::Xmm& v) {
  const Xbyak::Xmm spare = Scratch(0);
  switch (elementwise_.function) {
    case Function::kSign:
      return Sign(v);
    case Function::kAbs:
      return Abs(v);
    case Function::kNegate:
      unit_.Zero(g_, spare);
      return Subtract(v, spare, v);
    case Function::kBitNot:
      unit_.BroadcastBits(g_, spare, 0xFFFFFFFF, registers_.spare);
      return Xor(v, v, spare);
    case Function::kRound:
    case Function::kFloor:
    case Function::kCeil:
    case Function::kTruncate:
      return;  // integers are whole
    default:
      TILEWIRE_CHECK(false, "a function without code");
  }
}

void ElementwiseEmitter::Xor(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  unit_.has_masks() ? g_->vpxord(to, a, b) : g_->vpxor(to, a, b);
}

void ElementwiseEmitter::Subtract(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  is_wide() ? g_->vpsubq(to, a, b) : g_->vpsubd(to, a, b);
}

// Without an instruction for lanes of 8 bytes, the product of the low halves, plus those of a low
// and a high half in the high one. Scratch registers 0 and 1; `to` may be `a`.
void ElementwiseEmitter::Multiply(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  if (!is_wide()) return g_->vpmulld(to, a, b);
  if (unit_.has_masks()) return g_->vpmullq(to, a, b);
  const Xbyak::Xmm cross = Scratch(0), other = Scratch(1);
  g_->vpsrlq(cross, a, 32);
  g_->vpmuludq(cross, cross, b);
  g_->vpsrlq(other, b, 32);
  g_->vpmuludq(other, other, a);
  g_->vpaddq(cross, cross, other);
  g_->vpsllq(cross, cross, 32);
  g_->vpmuludq(to, a, b);
  g_->vpaddq(to, to, cross);
}

// A shift by the lane's bits or more gives 0, and so does the store where the type has fewer.
void ElementwiseEmitter::Shift(const Xbyak::Xmm& v, const Xbyak::Xmm& by) {
  if (elementwise_.function == Function::kShiftLeft) {
    is_wide() ? g_->vpsllvq(v, v, by) : g_->vpsllvd(v, v, by);
  } else {
    is_wide() ? g_->vpsrlvq(v, v, by) : g_->vpsrlvd(v, v, by);
  }
}

void ElementwiseEmitter::EqualLanes(const Xbyak::Xmm& to, const Xbyak::Xmm& a,
                                    const Xbyak::Xmm& b) {
  is_wide() ? g_->vpcmpeqq(to, a, b) : g_->vpcmpeqd(to, a, b);
}

void ElementwiseEmitter::GreaterLanes(const Xbyak::Xmm& to, const Xbyak::Xmm& a,
                                      const Xbyak::Xmm& b) {
  is_wide() ? g_->vpcmpgtq(to, a, b) : g_->vpcmpgtd(to, a, b);
}

void ElementwiseEmitter::Extremum(const Xbyak::Xmm& v, const Xbyak::Xmm& other) {
  const bool is_max = elementwise_.function == Function::kMax;
  if (!is_wide()) {
    if (lanes_.orders_signed()) return is_max ? g_->vpmaxsd(v, v, other) : g_->vpminsd(v, v, other);
    return is_max ? g_->vpmaxud(v, v, other) : g_->vpminud(v, v, other);
  }
  if (unit_.has_masks()) {
    if (lanes_.orders_signed()) return is_max ? g_->vpmaxsq(v, v, other) : g_->vpminsq(v, v, other);
    return is_max ? g_->vpmaxuq(v, v, other) : g_->vpminuq(v, v, other);
  }
  const Xbyak::Xmm greater = Scratch(0);
  GreaterOf(greater, v, other);
  is_max ? g_->vblendvpd(v, other, v, greater) : g_->vblendvpd(v, v, other, greater);
}

// to = all ones where a > b, without masks, by the sign that the integers have. Scratch registers 0
// to 2, of which `to` may be the first.
void ElementwiseEmitter::GreaterOf(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  if (lanes_.orders_signed()) return GreaterLanes(to, a, b);
  const Xbyak::Xmm sign = Scratch(1), other = Scratch(2);
  EqualLanes(sign, sign, sign);
  is_wide() ? g_->vpsllq(sign, sign, 63) : g_->vpslld(sign, sign, 31);
  Xor(other, b, sign);
  Xor(sign, a, sign);
  GreaterLanes(to, sign, other);
}

// (x > 0) - (x < 0) of all ones, which are -1; of unsigned integers (x == 0) + 1.
void ElementwiseEmitter::Sign(const Xbyak::Xmm& v) {
  const Xbyak::Xmm zero = Scratch(0), positive = Scratch(1);
  unit_.Zero(g_, zero);
  if (unit_.has_masks()) {
    const Xbyak::Xmm ones = Scratch(1), minus = Scratch(2);
    g_->vpternlogd(minus, minus, minus, 0xFF);
    Subtract(ones, zero, minus);
    const auto least = [&] {
      if (lanes_.orders_signed())
        return is_wide() ? g_->vpminsq(v, v, ones) : g_->vpminsd(v, v, ones);
      return is_wide() ? g_->vpminuq(v, v, ones) : g_->vpminud(v, v, ones);
    };
    least();
    if (!lanes_.orders_signed()) return;
    return is_wide() ? g_->vpmaxsq(v, v, minus) : g_->vpmaxsd(v, v, minus);
  }
  if (lanes_.orders_signed()) {
    GreaterLanes(positive, v, zero);
    GreaterLanes(v, zero, v);
    return Subtract(v, v, positive);
  }
  EqualLanes(v, v, zero);
  EqualLanes(positive, zero, zero);
  Subtract(v, v, positive);
}

void ElementwiseEmitter::Abs(const Xbyak::Xmm& v) {
  if (!lanes_.is_signed) return;
  if (!is_wide()) return g_->vpabsd(v, v);
  if (unit_.has_masks()) return g_->vpabsq(v, v);
  const Xbyak::Xmm negative = Scratch(0);
  unit_.Zero(g_, negative);
  GreaterLanes(negative, negative, v);
  Xor(v, v, negative);
  Subtract(v, v, negative);
}

void ElementwiseEmitter::PRelu(const Xbyak::Xmm& v, const Xbyak::Xmm& slope) {
  if (!lanes_.is_signed) return;
  const Xbyak::Xmm product = Scratch(2);
  Multiply(product, v, slope);
  if (unit_.has_masks()) {
    const Xbyak::Opmask& mask = registers_.masks[0];
    is_wide() ? g_->vpmovq2m(mask, v) : g_->vpmovd2m(mask, v);
    return is_wide() ? g_->vmovapd(v | mask, product) : g_->vmovaps(v | mask, product);
  }
  is_wide() ? g_->vblendvpd(v, v, product, v) : g_->vblendvps(v, v, product, v);
}

// The quotient cut towards zero, anything where b is 0. Scratch registers; `to` is the first.
void ElementwiseEmitter::Quotient(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
  if (!lanes_.is_narrow) return QuotientOfDoubles(to, a, b);
  const Xbyak::Xmm divisor = Scratch(1);
  g_->vcvtdq2ps(to, a);
  g_->vcvtdq2ps(divisor, b);
  g_->vdivps(to, to, divisor);
  g_->vcvttps2dq(to, to);
}

// Half of the lanes after the other. The lowest s32 divided by -1 is too large for s32, which the
// conversion answers with the lowest.
void ElementwiseEmitter::QuotientOfDoubles(const Xbyak::Xmm& to, const Xbyak::Xmm& a,
                                           const Xbyak::Xmm& b) {
  const Xbyak::Xmm high = Scratch(1), divisor = Scratch(2);
  const auto half = [&](const Xbyak::Xmm& v) -> Xbyak::Xmm {
    return unit_.bytes() == 64 ? Xbyak::Xmm(HalfOf(v)) : LowestOf(v);
  };
  const auto upper = [&](const Xbyak::Xmm& of, const Xbyak::Xmm& v) {
    if (unit_.bytes() == 64) return g_->vextracti64x4(HalfOf(of), Xbyak::Zmm(v.getIdx()), 1);
    g_->vextracti128(LowestOf(of), HalfOf(v), 1);
  };
  const auto widen = [&](const Xbyak::Xmm& wide, const Xbyak::Xmm& v) {
    lanes_.is_signed ? g_->vcvtdq2pd(wide, v) : g_->vcvtudq2pd(wide, v);
  };
  const auto cut = [&](const Xbyak::Xmm& narrow, const Xbyak::Xmm& wide) {
    lanes_.is_signed ? g_->vcvttpd2dq(narrow, wide) : g_->vcvttpd2udq(narrow, wide);
  };
  upper(high, a);
  upper(divisor, b);
  widen(high, half(high));
  widen(divisor, half(divisor));
  g_->vdivpd(high, high, divisor);
  cut(half(high), high);
  widen(to, half(a));
  widen(divisor, half(b));
  g_->vdivpd(to, to, divisor);
  cut(half(to), to);
  if (unit_.bytes() == 64)
    return g_->vinserti64x4(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(to.getIdx()), HalfOf(high), 1);
  g_->vinserti128(HalfOf(to), HalfOf(to), LowestOf(high), 1);
}

void ElementwiseEmitter::Divide(const Xbyak::Xmm& v, const Xbyak::Xmm& other) {
  const Xbyak::Xmm quotient = Scratch(0);
  Quotient(quotient, v, other);
  if (elementwise_.function == Function::kDiv) {
    unit_.has_masks() ? g_->vmovdqa32(v, quotient) : g_->vmovdqa(v, quotient);
  } else {
    g_->vpmulld(quotient, quotient, other);
    g_->vpsubd(v, v, quotient);
  }
  ZeroWhereZero(v, other);
  if (elementwise_.function == Function::kFloorMod && lanes_.is_signed)
    RoundRemainderDown(v, other);
}

void ElementwiseEmitter::ZeroWhereZero(const Xbyak::Xmm& v, const Xbyak::Xmm& where) {
  if (unit_.has_masks()) {
    g_->vptestmd(registers_.masks[0], where, where);
    return g_->vmovdqa32(v | registers_.masks[0] | Xbyak::util::T_z, v);
  }
  const Xbyak::Xmm zero = Scratch(1);
  unit_.Zero(g_, zero);
  g_->vpcmpeqd(zero, zero, where);
  g_->vpandn(v, zero, v);
}

// Adds the divisor where the signs of the remainder, which is not 0, and of the divisor differ.
void ElementwiseEmitter::RoundRemainderDown(const Xbyak::Xmm& rest, const Xbyak::Xmm& divisor) {
  const Xbyak::Xmm differ = Scratch(0), none = Scratch(1);
  Xor(differ, rest, divisor);
  if (unit_.has_masks()) {
    const Xbyak::Opmask &signs = registers_.masks[0], &some = registers_.masks[1];
    g_->vpmovd2m(signs, differ);
    g_->vptestmd(some, rest, rest);
    g_->kandw(signs, signs, some);
    return g_->vpaddd(rest | signs, rest, divisor);
  }
  g_->vpsrad(differ, differ, 31);
  unit_.Zero(g_, none);
  g_->vpcmpeqd(none, none, rest);
  g_->vpandn(differ, none, differ);
  g_->vpand(differ, differ, divisor);
  g_->vpaddd(rest, rest, differ);
}

}  // namespace tilewire::jit
