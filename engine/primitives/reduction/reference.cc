// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other; sums and products
// in double.
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reduction/combination.h"
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::reduction {

absl::StatusOr<ReductionDesc> ResolveReference(const Request<ReductionDesc>& request) {
  return ResolveF32(request.desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  Dims reduced;  // the box of src that falls on one element of dst
  for (int d = 0; d < desc.src.rank(); ++d) {
    reduced.push_back(desc.dst.dim(d) == 1 ? desc.src.dim(d) : 1);
  }
  const auto compute = [desc, reduced, src = SeparableOffsets(desc.src),
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      double result = NeutralElement(desc.algorithm);
      ForEachOperation(reduced, [&](Dims at) {
        for (size_t d = 0; d < at.size(); ++d) at[d] += index[d];
        result = Combine(desc, result, piece.Get<const float>(kArgSrc)[src.Offset(at)]);
      });
      piece.Get<float>(kArgDst)[dst.Offset(index)] =
          static_cast<float>(FinishCombination(desc, result));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), reduced}, compute);
}

}  // namespace tilewire::reduction
