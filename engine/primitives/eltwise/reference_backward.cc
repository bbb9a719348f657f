// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one element after the other, in double.
#include "engine/base/status_macros.h"
#include "engine/functions/function.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/implementations.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::eltwise {
namespace {

absl::Status RequireSlope(const EltwiseDesc& desc) {
  const absl::string_view name = AlgorithmName(desc.op.function);
  if (!functions::HasSlope(desc.op.function)) {
    return Unimplemented(name, " has no derivative: ", functions::RowOf(desc.op.function).no_slope);
  }
  if (ReadsResult(desc) && !functions::HasResultSlope(desc.op)) {
    return Unimplemented("the derivative of ", name, " with alpha ", desc.op.alpha,
                         " does not follow from dst: src is to be given");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveReferenceBackward(const Request<EltwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(EltwiseDesc resolved,
                        ResolveF32Gradients(request, SavedTensor(request.desc)));
  ABSL_RETURN_IF_ERROR(RequireSlope(request.desc));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  const auto slope =
      ReadsResult(desc) ? functions::EltwiseDerivativeOfResult : functions::EltwiseDerivative;
  const auto compute = [op = desc.op, slope, saved_arg = ReadsResult(desc) ? kArgDst : kArgSrc,
                        saved = SeparableOffsets(SavedTensor(desc)),
                        diff_src = SeparableOffsets(desc.diff_src),
                        diff_dst = SeparableOffsets(desc.diff_dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const double factor = slope(op, piece.Get<const float>(saved_arg)[saved.Offset(index)]);
      const double gradient = piece.Get<const float>(kArgDiffDst)[diff_dst.Offset(index)];
      piece.Get<float>(kArgDiffSrc)[diff_src.Offset(index)] =
          factor == 0 ? 0.0f : static_cast<float>(factor * gradient);
    });
  };
  return CreateReferencePrimitive(BackwardInfoOf(request), {desc.diff_src.dims()}, compute);
}

}  // namespace tilewire::eltwise
