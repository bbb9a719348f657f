// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/primitives/convert/conversion.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"

namespace tilewire::convert {
namespace {

// Predicates of vcmpps.
constexpr int kNotEqualTo = 4, kOrdered = 7, kAtLeast = 13;

bool IsNarrow(DataType type) { return IsIntegerType(type) && SizeOf(type) < 4; }

// Whether the unit converts between f32 and the integer type.
bool ConvertsReals(const VectorUnit& unit, DataType integer) {
  return unit.has_masks() || IsNarrow(integer) || integer == DataType::kS32;
}

// Whether there is code for the pair.
bool HasVectors(const VectorUnit& unit, DataType src, DataType dst) {
  const auto is_half = [](DataType type) {
    return type == DataType::kF16 || type == DataType::kBf16;
  };
  if (is_half(src) || is_half(dst)) return false;
  if (src == DataType::kF64 || dst == DataType::kF64)
    return src == DataType::kF32 || dst == DataType::kF32;
  if (src == DataType::kF32 && IsIntegerType(dst)) return ConvertsReals(unit, dst);
  if (dst == DataType::kF32 && IsIntegerType(src)) return ConvertsReals(unit, src);
  return true;
}

int LaneBytesOf(const std::vector<DataType>& types) {
  int bytes = 4;
  for (DataType type : types) bytes = std::max(bytes, ElementLanes::LaneBytes(type));
  return bytes;
}

// Whether there is code for the types one after the other.
bool HasVectors(const VectorUnit& unit, const std::vector<DataType>& types) {
  for (size_t i = 0; i + 1 < types.size(); ++i) {
    if (!HasVectors(unit, types[i], types[i + 1])) return false;
  }
  if (types.size() == 2) return true;
  if (absl::c_linear_search(types, DataType::kF64)) return false;
  return unit.has_masks() || LaneBytesOf(types) == 4;
}

// Lanes hold f32, or integers extended to the lane; truth values are the integers 1 and 0. Where
// lanes have 8 bytes, f32 and its conversions to fewer bits take half of a register.
class ConvertGenerator final : public ElementwiseGenerator {
 public:
  ConvertGenerator(absl::string_view name, const ElementwiseConfig& config,
                   std::vector<DataType> types)
      : ElementwiseGenerator(name, config),
        types_(std::move(types)),
        is_wide_(config.LaneBytes() == 8),
        constants_(types_.size()) {}

 private:
  size_t steps() const { return types_.size() - 1; }
  Xbyak::Xmm Constant(size_t step, int i) const { return Vector(constants_[step][i]); }
  Xbyak::Xmm Reals(const Xbyak::Xmm& v) const { return lanes().Reals(v); }

  // A register that keeps a constant of the step. Steps to integers have two, and every other step
  // at most starts at f32; one to truth values has one: there are enough for all.
  Xbyak::Xmm NewConstant(size_t step) {
    const int own = static_cast<int>(std::size(kConstants));
    constants_[step].push_back(taken_ < own ? kConstants[taken_] : kMoreConstants[taken_ - own]);
    ++taken_;
    return Vector(constants_[step].back());
  }

  void EmitConstants() override {
    for (size_t i = 0; i < steps(); ++i) {
      const DataType to = types_[i + 1];
      if (to == DataType::kBool || (i == 0 && types_[0] == DataType::kBool)) {
        EmitOnes(NewConstant(i));
      } else if (types_[i] == DataType::kF32 && IsIntegerType(to)) {
        const Xbyak::Xmm first = NewConstant(i);
        EmitBounds(to, first, NewConstant(i));
      }
    }
  }

  // Bounds of integers that f32 becomes.
  void EmitBounds(DataType to, const Xbyak::Xmm& first, const Xbyak::Xmm& second) {
    const bool is_signed = ElementLanes::IsSigned(to);
    if (IsNarrow(to)) {
      const int bits = static_cast<int>(SizeOf(to)) * 8 - (is_signed ? 1 : 0);
      unit().Broadcast(this, first, is_signed ? -std::ldexp(1.0f, bits) : 0.0f, rax);
      unit().Broadcast(this, second, std::ldexp(1.0f, bits) - 1, rax);
    } else if (is_signed) {
      unit().Broadcast(this, first, SizeOf(to) == 8 ? 0x1p63f : 0x1p31f, rax);
      unit().BroadcastBits(this, second, 0xFFFFFFFF, rax);
    } else {
      unit().Zero(this, first);
    }
  }

  void EmitOnes(const Xbyak::Xmm& ones) {
    unit().BroadcastBits(this, ones, 0xFFFFFFFF, rax);
    is_wide_ ? vpsrlq(ones, ones, 63) : vpsrld(ones, ones, 31);
  }

  void EmitFunction(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm>,
                    const Xbyak::Xmm& spare) override {
    if (types_[0] == DataType::kBool) EmitTruth(v, spare, Constant(0, 0), /*from_reals=*/false);
    for (size_t i = 0; i < steps(); ++i) EmitStep(i, v, spare);
  }

  void EmitStep(size_t i, const Xbyak::Xmm& v, const Xbyak::Xmm& spare) {
    const DataType from = types_[i], to = types_[i + 1];
    if (from == to || (from == DataType::kBool && IsIntegerType(to))) return;
    if (to == DataType::kBool) return EmitTruth(v, spare, Constant(i, 0), from == DataType::kF32);
    if (from == DataType::kF32)
      return to == DataType::kF64 ? vcvtps2pd(v, Reals(v)) : EmitToInteger(i, v, spare);
    if (from == DataType::kF64) return vcvtpd2ps(Reals(v), v);
    if (to == DataType::kF32) return EmitToReals(from, v);
    if (i + 1 < steps()) EmitWrap(to, v);  // else the store cuts it
  }

  void EmitToReals(DataType from, const Xbyak::Xmm& v) {
    const bool is_signed = !IsIntegerType(from) || IsNarrow(from) || ElementLanes::IsSigned(from);
    if (is_wide_) return is_signed ? vcvtqq2ps(Reals(v), v) : vcvtuqq2ps(Reals(v), v);
    is_signed ? vcvtdq2ps(v, v) : vcvtudq2ps(v, v);
  }

  // The low bits of the lane, extended as the type has them.
  void EmitWrap(DataType to, const Xbyak::Xmm& v) {
    const int bits = (is_wide_ ? 64 : 32) - static_cast<int>(SizeOf(to)) * 8;
    if (bits == 0) return;
    is_wide_ ? vpsllq(v, v, bits) : vpslld(v, v, bits);
    if (ElementLanes::IsSigned(to)) return is_wide_ ? vpsraq(v, v, bits) : vpsrad(v, v, bits);
    is_wide_ ? vpsrlq(v, v, bits) : vpsrld(v, v, bits);
  }

  // 1 for what is not 0.
  void EmitTruth(const Xbyak::Xmm& v, const Xbyak::Xmm& zero, const Xbyak::Xmm& ones,
                 bool from_reals) {
    unit().Zero(this, zero);
    if (unit().has_masks()) {
      if (from_reals) {
        vcmpps(spare_mask_, Reals(v), Reals(zero), kNotEqualTo);
      } else {
        is_wide_ ? vptestmq(spare_mask_, v, v) : vptestmd(spare_mask_, v, v);
      }
      const Xbyak::Xmm to = v | spare_mask_ | Xbyak::util::T_z;
      return is_wide_ ? vmovapd(to, ones) : vmovaps(to, ones);
    }
    if (from_reals) {
      vcmpps(v, v, zero, kNotEqualTo);
      return vandps(v, v, ones);
    }
    is_wide_ ? vpcmpeqq(v, v, zero) : vpcmpeqd(v, v, zero);
    vandnps(v, v, ones);
  }

  // From f32, towards zero, the nearest in range; 0 of NaN.
  void EmitToInteger(size_t i, const Xbyak::Xmm& v, const Xbyak::Xmm& spare) {
    const DataType to = types_[i + 1];
    const Xbyak::Xmm first = Reals(Constant(i, 0)), second = Constant(i, 1);
    if (IsNarrow(to)) {
      EmitToNarrow(to, Reals(v), first, Reals(second), Reals(spare));
    } else if (ElementLanes::IsSigned(to)) {
      EmitToSigned(to, v, first, second, spare);
    } else {
      vmaxps(Reals(v), Reals(v), first);  // the second for NaN
      SizeOf(to) == 8 ? vcvttps2uqq(v, Reals(v)) : vcvttps2udq(Reals(v), Reals(v));
    }
    if (!is_wide_ || SizeOf(to) == 8) return;
    to == DataType::kS32 || IsNarrow(to) ? vpmovsxdq(v, Reals(v)) : vpmovzxdq(v, Reals(v));
  }

  void EmitToNarrow(DataType to, const Xbyak::Xmm& reals, const Xbyak::Xmm& least,
                    const Xbyak::Xmm& most, const Xbyak::Xmm& spare) {
    if (ElementLanes::IsSigned(to)) ZeroNan(reals, spare);
    vmaxps(reals, reals, least);  // the second for NaN
    vminps(reals, reals, most);
    vcvttps2dq(reals, reals);
  }

  // The conversions give the lowest integer for what is out of range.
  void EmitToSigned(DataType to, const Xbyak::Xmm& v, const Xbyak::Xmm& limit,
                    const Xbyak::Xmm& ones, const Xbyak::Xmm& spare) {
    const Xbyak::Xmm reals = Reals(v);
    ZeroNan(reals, Reals(spare));
    if (!unit().has_masks()) {
      vcmpps(spare, v, limit, kAtLeast);
      vcvttps2dq(v, v);
      return vpxor(v, v, spare);
    }
    vcmpps(spare_mask_, reals, limit, kAtLeast);  // there the lowest becomes the largest
    if (SizeOf(to) == 8) {
      vcvttps2qq(v, reals);
      return vpxorq(v | spare_mask_, v, ones);
    }
    vcvttps2dq(reals, reals);
    vpxord(reals | spare_mask_, reals, Reals(ones));
  }

  void ZeroNan(const Xbyak::Xmm& reals, const Xbyak::Xmm& spare) {
    if (unit().has_masks()) {
      vcmpps(spare_mask_, reals, reals, kOrdered);
      return vmovaps(reals | spare_mask_ | Xbyak::util::T_z, reals);
    }
    vcmpps(spare, reals, reals, kOrdered);
    vandps(reals, reals, spare);
  }

  const std::vector<DataType> types_;
  const bool is_wide_;
  std::vector<std::vector<int>> constants_;  // registers, by step
  int taken_ = 0;
};

absl::StatusOr<ElementwisePlan> PlanOf(const ConvertDesc& desc, cpu::Isa isa) {
  return ElementwisePlan::Create({&desc.dst, &desc.src}, VectorUnit::Of(isa));
}

}  // namespace

absl::StatusOr<ConvertDesc> ResolveVectors(const Request<ConvertDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ConvertDesc resolved, ResolveReference(request));
  if (!HasVectors(VectorUnit::Of(request.facts.isa), TypesOf(resolved))) {
    return Unimplemented("has no vectors from ", DataTypeName(resolved.src.data_type()), " to ",
                         DataTypeName(resolved.dst.data_type()));
  }
  ABSL_RETURN_IF_ERROR(PlanOf(resolved, request.facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateVectors(const Request<ConvertDesc>& request) {
  const ConvertDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, PlanOf(desc, request.facts.isa));
  const std::vector<DataType> types = TypesOf(desc);
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<ConvertGenerator>(request.facts.name,
                                                       plan.Config({}, LaneBytesOf(types)), types));
  return MakeElementwisePrimitive(InfoOf(request), /*stay_zero=*/true, std::move(plan),
                                  std::move(generator));
}

}  // namespace tilewire::convert
