// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/eltwise/implementations.h"

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
    const float* src = args.Get<const float>(kArgSrc);
    float* dst = args.Get<float>(kArgDst);
    ForEachIndex(dst_desc_.dims(), [&](const Dims& index) {
      dst[dst_.Offset(index)] = jit::EltwiseScalar(op_, src[src_.Offset(index)]);
    });
    ZeroPadding(dst_desc_, dst);
  }

  const EltwiseOp op_;
  const SeparableOffsets src_, dst_;
  const MemoryDesc dst_desc_;
};

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveReference(const EltwiseDesc& desc,
                                             const Attributes& attributes) {
  if (desc.src.data_type() != DataType::kF32) {
    return absl::UnimplementedError(
        absl::StrCat("type ", DataTypeName(desc.src.data_type()), " is not f32"));
  }
  if (!attributes.post_ops.empty() || !attributes.output_scales.IsDefault()) {
    return absl::UnimplementedError("takes no post-ops and no output scales");
  }
  if (desc.prop_kind == PropKind::kBackwardData) return absl::UnimplementedError("backward");
  EltwiseDesc resolved = desc;
  if (resolved.dst.IsAny()) resolved.dst = desc.src;
  if (resolved.dst.Overlaps()) {
    return absl::UnimplementedError("dst is `any` and the elements of src overlap");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return std::make_unique<Reference>(InfoOf(desc, attributes, name), desc);
}

}  // namespace tilewire::eltwise
