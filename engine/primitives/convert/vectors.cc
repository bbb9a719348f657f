// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/elementwise_kernel.h"
#include "engine/kernels/elementwise_plan.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"

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

// Integers convert to others as they are loaded and stored.
class ConvertGenerator final : public ElementwiseGenerator {
 public:
  ConvertGenerator(absl::string_view name, const ElementwiseConfig& config)
      : ElementwiseGenerator(name, config),
        src_(config.operands[0].type),
        dst_(config.dst_type),
        is_wide_(config.LaneBytes() == 8) {}

 private:
  bool gives_truth() const { return src_ == DataType::kBool || dst_ == DataType::kBool; }
  Xbyak::Xmm Constant(int i) const { return Vector(kConstants[i]); }

  void EmitConstants() override {
    if (gives_truth()) return EmitOnes();
    if (src_ != DataType::kF32 || !IsIntegerType(dst_)) return;
    if (IsNarrow(dst_)) {
      const bool is_signed = ElementLanes::IsSigned(dst_);
      const int bits = static_cast<int>(SizeOf(dst_)) * 8 - (is_signed ? 1 : 0);
      unit().Broadcast(this, Constant(0), is_signed ? -std::ldexp(1.0f, bits) : 0.0f, rax);
      unit().Broadcast(this, Constant(1), std::ldexp(1.0f, bits) - 1, rax);
    } else if (ElementLanes::IsSigned(dst_)) {
      unit().Broadcast(this, Constant(0), is_wide_ ? 0x1p63f : 0x1p31f, rax);
      unit().BroadcastBits(this, Constant(1), 0xFFFFFFFF, rax);
    } else {
      unit().Zero(this, Constant(0));
    }
  }

  // 1 as dst has it.
  void EmitOnes() {
    if (dst_ == DataType::kF32) return unit().Broadcast(this, Constant(0), 1.0f, rax);
    unit().BroadcastBits(this, Constant(0), 0xFFFFFFFF, rax);
    is_wide_ ? vpsrlq(Constant(0), Constant(0), 63) : vpsrld(Constant(0), Constant(0), 31);
  }

  void EmitFunction(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm>,
                    const Xbyak::Xmm& spare) override {
    const Xbyak::Xmm reals = lanes().Reals(v);
    if (gives_truth()) return EmitTruth(v, spare);
    if (src_ == dst_) return;
    if (src_ == DataType::kF32) {
      if (dst_ == DataType::kF64) return vcvtps2pd(v, reals);
      return EmitToInteger(v, spare);
    }
    if (dst_ != DataType::kF32) return;
    if (src_ == DataType::kF64) return vcvtpd2ps(reals, v);
    const bool is_signed = IsNarrow(src_) || ElementLanes::IsSigned(src_);
    if (is_wide_) return is_signed ? vcvtqq2ps(reals, v) : vcvtuqq2ps(reals, v);
    is_signed ? vcvtdq2ps(v, v) : vcvtudq2ps(v, v);
  }

  void EmitTruth(const Xbyak::Xmm& v, const Xbyak::Xmm& zero) {
    const bool from_reals = src_ == DataType::kF32;
    unit().Zero(this, zero);
    if (unit().has_masks()) {
      if (from_reals) {
        vcmpps(spare_mask_, v, zero, kNotEqualTo);
      } else {
        is_wide_ ? vptestmq(spare_mask_, v, v) : vptestmd(spare_mask_, v, v);
      }
      const Xbyak::Xmm to = v | spare_mask_ | Xbyak::util::T_z;
      return is_wide_ ? vmovapd(to, Constant(0)) : vmovaps(to, Constant(0));
    }
    if (from_reals) {
      vcmpps(v, v, zero, kNotEqualTo);
      return vandps(v, v, Constant(0));
    }
    is_wide_ ? vpcmpeqq(v, v, zero) : vpcmpeqd(v, v, zero);
    vandnps(v, v, Constant(0));
  }

  // From f32, towards zero, the nearest in range; 0 of NaN. The conversions give the lowest signed
  // integer, and the largest unsigned one, for what is out of range.
  void EmitToInteger(const Xbyak::Xmm& v, const Xbyak::Xmm& spare) {
    const Xbyak::Xmm reals = lanes().Reals(v);
    if (!ElementLanes::IsSigned(dst_)) {
      vmaxps(reals, reals, lanes().Reals(Constant(0)));  // the second for NaN
      if (!IsNarrow(dst_)) return is_wide_ ? vcvttps2uqq(v, reals) : vcvttps2udq(v, v);
      vminps(v, v, Constant(1));
      return vcvttps2dq(v, v);
    }
    ZeroNan(reals, lanes().Reals(spare));
    if (IsNarrow(dst_)) {
      vmaxps(v, v, Constant(0));
      vminps(v, v, Constant(1));
      return vcvttps2dq(v, v);
    }
    if (unit().has_masks()) {
      vcmpps(spare_mask_, reals, lanes().Reals(Constant(0)), kAtLeast);
      is_wide_ ? vcvttps2qq(v, reals) : vcvttps2dq(v, v);
      const Xbyak::Xmm large = v | spare_mask_;  // the lowest becomes the largest
      return is_wide_ ? vpxorq(large, v, Constant(1)) : vpxord(large, v, Constant(1));
    }
    vcmpps(spare, v, Constant(0), kAtLeast);
    vcvttps2dq(v, v);
    vpxor(v, v, spare);
  }

  void ZeroNan(const Xbyak::Xmm& reals, const Xbyak::Xmm& spare) {
    if (unit().has_masks()) {
      vcmpps(spare_mask_, reals, reals, kOrdered);
      return vmovaps(reals | spare_mask_ | Xbyak::util::T_z, reals);
    }
    vcmpps(spare, reals, reals, kOrdered);
    vandps(reals, reals, spare);
  }

  const DataType src_, dst_;
  const bool is_wide_;
};

// Immutable.
class Vectors final : public Primitive {
 public:
  Vectors(PrimitiveInfo info, const ConvertDesc& desc, ElementwisePlan plan,
          std::unique_ptr<const ConvertGenerator> generator)
      : Primitive(std::move(info)),
        desc_(desc),
        plan_(std::move(plan)),
        generator_(std::move(generator)) {}

 private:
  static int64_t Begin(const MemoryDesc& desc) { return desc.offset0() * SizeOf(desc.data_type()); }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    plan_.Run(generator_->entry<ElementwiseGenerator::Function>(),
              args.Get<std::byte>(kArgDst) + Begin(desc_.dst),
              {args.Get<const std::byte>(kArgSrc) + Begin(desc_.src)}, team);
  }

  const ConvertDesc desc_;
  const ElementwisePlan plan_;
  const std::unique_ptr<const ConvertGenerator> generator_;
};

absl::StatusOr<ElementwisePlan> PlanOf(const ConvertDesc& desc, cpu::Isa isa) {
  return ElementwisePlan::Create({&desc.dst, &desc.src}, VectorUnit::Of(isa));
}

}  // namespace

absl::StatusOr<ConvertDesc> ResolveVectors(const ConvertDesc& desc, const Attributes& attributes,
                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ConvertDesc resolved, ResolveReference(desc, attributes, facts));
  const DataType src = resolved.src.data_type(), dst = resolved.dst.data_type();
  if (!HasVectors(VectorUnit::Of(facts.isa), src, dst)) {
    return absl::UnimplementedError(
        absl::StrCat("has no vectors from ", DataTypeName(src), " to ", DataTypeName(dst)));
  }
  ABSL_RETURN_IF_ERROR(PlanOf(resolved, facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateVectors(const ConvertDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, PlanOf(desc, facts.isa));
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<ConvertGenerator>(facts.name, plan.Config({})));
  return std::make_unique<Vectors>(WithCode(InfoOf(desc, attributes, facts), *generator), desc,
                                   std::move(plan), std::move(generator));
}

}  // namespace tilewire::convert
