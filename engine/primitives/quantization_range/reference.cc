// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layout, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantization_range/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::quantization_range {

absl::StatusOr<QuantizationRangeDesc> ResolveReference(
    const Request<QuantizationRangeDesc>& request) {
  const QuantizationRangeDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  QuantizationRangeDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  if (resolved.dst.stride(0) != 1) return Unimplemented("dst is not dense");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<QuantizationRangeDesc>& request) {
  const QuantizationRangeDesc& desc = request.desc;
  const auto compute = [desc, src = SeparableOffsets(desc.src)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims&) {
      const float* elements = piece.Get<const float>(kArgSrc);
      float low = 0, high = 0;
      ForEachOperation(desc.src.dims(), [&](const Dims& index) {
        const float x = elements[src.Offset(index)];
        low = x < low ? x : low;
        high = x > high ? x : high;
      });
      StoreRange(low, high, piece.Get<float>(kArgDst) + desc.dst.offset0());
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {{1}, desc.src.dims()}, compute);
}

}  // namespace tilewire::quantization_range
