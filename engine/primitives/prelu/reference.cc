// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/functions/function.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/prelu/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::prelu {

absl::StatusOr<PreluDesc> ResolveReference(const Request<PreluDesc>& request) {
  PreluDesc resolved = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(resolved.src, resolved.weights, resolved.dst));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  ABSL_ASSIGN_OR_RETURN(resolved.weights, WeightsOf(resolved));
  return WithDst(resolved, OrLayoutOf(resolved.dst, resolved.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<PreluDesc>& request) {
  const PreluDesc& desc = request.desc;
  const auto compute = [desc, post_ops = request.attributes.post_ops,
                        src = SeparableOffsets(desc.src), weights = SeparableOffsets(desc.weights),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const Dims shared = BroadcastIndex(desc.weights.dims(), index);
      const float operands[] = {piece.Get<const float>(kArgSrc)[src.Offset(index)],
                                piece.Get<const float>(kArgWeights)[weights.Offset(shared)]};
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      const float value = functions::Evaluate({functions::Function::kPRelu}, operands);
      result = ApplyPostOps(post_ops, value, result);
    });
  };
  return CreateReferencePrimitive(InfoOfPrelu(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::prelu
