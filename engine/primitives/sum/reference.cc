// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element after the other, added in f32.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {

absl::StatusOr<SumDesc> ResolveReference(const Request<SumDesc>& request) {
  const SumDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.srcs[0]));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<SumDesc>& request) {
  const SumDesc& desc = request.desc;
  const std::vector<SeparableOffsets> srcs(desc.srcs.begin(), desc.srcs.end());
  const auto compute = [type = desc.dst.data_type(), scales = desc.scales, srcs,
                        dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float total = 0;
      for (size_t i = 0; i < srcs.size(); ++i) {
        const void* src = piece.Find(kArgMultipleSrc + static_cast<int>(i));
        const float term = scales[i] * LoadElement(type, src, srcs[i].Offset(index));
        total = i == 0 ? term : total + term;
      }
      StoreElement(type, total, piece.Find(kArgDst), dst.Offset(index));
    });
  };
  const auto terms = static_cast<int64_t>(srcs.size());
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), {terms}}, compute);
}

}  // namespace tilewire::sum
