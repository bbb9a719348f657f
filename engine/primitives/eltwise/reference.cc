// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element after the other, computed in
// f32.
#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::eltwise {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const EltwiseDesc& desc)
      : Primitive(std::move(info)),
        op_(desc.op),
        src_(desc.src),
        dst_(desc.dst),
        dst_desc_(desc.dst) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const void* src = args.Get<const void>(kArgSrc);
    void* dst = args.Get<void>(kArgDst);
    const DataType type = dst_desc_.data_type();
    ForEachIndex(dst_desc_.dims(), [&](const Dims& index) {
      const float x = LoadElement(type, src, src_.Offset(index));
      StoreElement(type, jit::EltwiseScalar(op_, x), dst, dst_.Offset(index));
    });
    ZeroPadding(dst_desc_, dst);
  }

  const EltwiseOp op_;
  const SeparableOffsets src_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveReference(const EltwiseDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ABSL_RETURN_IF_ERROR(RequireForward(desc.prop_kind));
  EltwiseDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kEltwise, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::eltwise
