// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts, one element of the gradient after the
// other, which looks through all indices; sums in double.
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::gather {
namespace {

// The sum of what indices took from element `index` of src.
float SumOf(const GatherDesc& desc, const ReferencePiece& piece, const Dims& index) {
  const void* indices = piece.Find(kArgSrc1);
  const int axis = desc.axis;
  double sum = 0;
  ForEachOperation(desc.indices.dims(), [&](const Dims& which) {
    const int64_t place = PlaceOfIndex(desc.indices.data_type(), indices,
                                       desc.indices.Offset(which), desc.src.dim(axis));
    if (place != index[axis]) return;
    Dims from(index.begin(), index.begin() + axis);
    from.insert(from.end(), which.begin(), which.end());
    from.insert(from.end(), index.begin() + axis + 1, index.end());
    sum += piece.Get<const float>(kArgDiffDst)[desc.dst.Offset(from)];
  });
  return static_cast<float>(sum);
}

}  // namespace

PrimitiveInfo BackwardInfoOf(const Request<GatherDesc>& request) {
  const GatherDesc& desc = request.desc;
  return BasicInfo(
      request, {{kArgSrc1, desc.indices}, {kArgDiffDst, desc.dst}, {kArgDiffWeights, desc.src}});
}

absl::StatusOr<GatherDesc> ResolveReferenceBackward(const Request<GatherDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.src));
  ABSL_RETURN_IF_ERROR(RequireIndexType(request.desc.indices));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  GatherDesc resolved = request.desc;
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPlain(resolved.src));
  return WithDst(resolved, OrPlain(resolved.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<GatherDesc>& request) {
  const GatherDesc& desc = request.desc;
  const auto check = [desc](const ExecuteArgs& args, const threading::Team& team) {
    return CheckIndices(desc, args.Find(kArgSrc1), team);
  };
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      piece.Get<float>(kArgDiffWeights)[desc.src.Offset(index)] = SumOf(desc, piece, index);
    });
  };
  return CreateReferencePrimitive(
      BackwardInfoOf(request),
      {.results = desc.src.dims(), .operations = desc.indices.dims(), .check = check}, compute);
}

}  // namespace tilewire::gather
