// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: reorder.h's formula for one element after the other, any layout,
// any type.
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {
namespace {

// Immutable.
class Formula {
 public:
  Formula(const ReorderDesc& desc, const Attributes& attributes)
      : src_(desc.src),
        dst_(desc.dst),
        scales_(attributes.output_scales),
        adds_(!attributes.post_ops.empty()),
        sum_scale_(adds_ ? std::get<SumPostOp>(attributes.post_ops.entries()[0]).scale : 0),
        copies_(RequirePlainCopy(desc, attributes).ok()) {}

  void RunElement(const void* src, void* dst, const Dims& index) const {
    const int64_t from = src_.Offset(index), to = dst_.Offset(index);
    if (copies_) return CopyElement(src_.data_type(), src, from, dst, to);
    float value = LoadElement(src_.data_type(), src, from);
    if (!scales_.IsDefault()) value *= ScaleOf(index);
    if (adds_) value += sum_scale_ * LoadElement(dst_.data_type(), dst, to);
    StoreElement(dst_.data_type(), value, dst, to);
  }

 private:
  float ScaleOf(const Dims& index) const {
    int64_t at = 0;
    for (int d = 0; d < dst_.rank(); ++d) {
      if (scales_.mask >> d & 1) at = at * dst_.dim(d) + index[d];
    }
    return scales_.scales[at];
  }

  const MemoryDesc src_, dst_;
  const OutputScales scales_;
  const bool adds_;
  const float sum_scale_;
  const bool copies_;
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveReference(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  ABSL_RETURN_IF_ERROR(RequireSumAtMost(desc, request.attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  const auto compute = [formula = Formula(desc, request.attributes)](const ReferencePiece& piece) {
    const void* src = piece.Find(kArgSrc);
    void* dst = piece.Find(kArgDst);
    piece.ForEach([&](const Dims& index) { formula.RunElement(src, dst, index); });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::reorder
