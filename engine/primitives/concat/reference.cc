// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::concat {

absl::StatusOr<ConcatDesc> ResolveReference(const Request<ConcatDesc>& request) {
  const ConcatDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.srcs[0]));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ConcatDesc>& request) {
  const ConcatDesc& desc = request.desc;
  const std::vector<SeparableOffsets> srcs(desc.srcs.begin(), desc.srcs.end());
  const auto compute = [desc, srcs, dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      Dims from = index;
      size_t i = 0;  // the source whose element this is
      while (from[desc.axis] >= desc.srcs[i].dim(desc.axis)) {
        from[desc.axis] -= desc.srcs[i++].dim(desc.axis);
      }
      CopyElement(desc.dst.data_type(), piece.Find(kArgMultipleSrc + static_cast<int>(i)),
                  srcs[i].Offset(from), piece.Find(kArgDst), dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::concat
