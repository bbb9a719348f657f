// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element after the other, computed in
// f32.
#include "engine/base/status_macros.h"
#include "engine/functions/function.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::eltwise {

absl::StatusOr<EltwiseDesc> ResolveReference(const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  const auto compute = [op = desc.op, type = desc.dst.data_type(), src = SeparableOffsets(desc.src),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const float x = LoadElement(type, piece.Find(kArgSrc), src.Offset(index));
      StoreElement(type, functions::EltwiseScalar(op, x), piece.Find(kArgDst), dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::eltwise
