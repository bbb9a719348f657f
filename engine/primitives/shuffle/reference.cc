// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layout and type, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/shuffle/implementations.h"

namespace tilewire::shuffle {

absl::StatusOr<ShuffleDesc> ResolveReference(const Request<ShuffleDesc>& request) {
  const ShuffleDesc& desc = request.desc;
  if (desc.prop_kind == PropKind::kBackwardData) ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, OrLayoutOf(desc.dst, desc.src));
  if (dst != desc.src) return Unimplemented("layouts of src and dst differ");
  return WithDst(desc, dst);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ShuffleDesc>& request) {
  const ShuffleDesc& desc = request.desc;
  const bool backward = desc.prop_kind == PropKind::kBackwardData;
  const auto compute = [axis = desc.axis, source = SourceIndices(desc),
                        src_arg = backward ? kArgDiffDst : kArgSrc,
                        dst_arg = backward ? kArgDiffSrc : kArgDst, type = desc.dst.data_type(),
                        src = SeparableOffsets(desc.src),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      Dims from = index;
      from[axis] = source[index[axis]];
      CopyElement(type, piece.Find(src_arg), src.Offset(from), piece.Find(dst_arg),
                  dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::shuffle
