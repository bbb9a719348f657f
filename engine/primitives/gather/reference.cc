// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::gather {

absl::StatusOr<GatherDesc> ResolveReference(const Request<GatherDesc>& request) {
  const GatherDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireIndexType(desc.indices));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrPlain(desc.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<GatherDesc>& request) {
  const GatherDesc& desc = request.desc;
  const auto check = [desc](const ExecuteArgs& args, const threading::Team& team) {
    return CheckIndices(desc, args.Find(kArgSrc1), team);
  };
  const auto compute = [desc](const ReferencePiece& piece) {
    const void* indices = piece.Find(kArgSrc1);
    const int axis = desc.axis, taken = desc.indices.rank();
    piece.ForEach([&](const Dims& index) {
      const Dims which(index.begin() + axis, index.begin() + axis + taken);
      const int64_t at = PlaceOfIndex(desc.indices.data_type(), indices, desc.indices.Offset(which),
                                      desc.src.dim(axis));
      Dims from(index.begin(), index.begin() + axis);
      from.push_back(std::max<int64_t>(0, at));  // `check` has seen it, or the run is stopped
      from.insert(from.end(), index.begin() + axis + taken, index.end());
      CopyElement(desc.src.data_type(), piece.Find(kArgSrc), desc.src.Offset(from),
                  piece.Find(kArgDst), desc.dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {.results = desc.dst.dims(), .check = check},
                                  compute);
}

}  // namespace tilewire::gather
