// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::binary {
absl::StatusOr<BinaryDesc> ResolveReference(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src0, desc.src1, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src0));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  const auto compute = [desc, post_ops = request.attributes.post_ops,
                        src0 = SeparableOffsets(desc.src0), src1 = SeparableOffsets(desc.src1),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const float xy[] = {
          piece.Get<const float>(kArgSrc)[src0.Offset(index)],
          piece.Get<const float>(kArgSrc1)[src1.Offset(BroadcastIndex(desc.src1.dims(), index))]};
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      result = ApplyPostOps(post_ops, functions::Evaluate({desc.algorithm}, xy), result);
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::binary
