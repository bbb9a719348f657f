// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/integer_sum/arithmetic.h"
#include "engine/primitives/integer_sum/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::integer_sum {

absl::StatusOr<IntegerSumDesc> ResolveReference(const Request<IntegerSumDesc>& request) {
  const IntegerSumDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  for (const MemoryDesc& src : desc.srcs) {
    if (!IsByte(src.data_type())) return Unimplemented("does not add up ", src.ToString());
  }
  if (!IsByte(desc.dst.data_type())) return Unimplemented("does not write ", desc.dst.ToString());
  if (!desc.dst.IsAny()) return desc;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc like, desc.srcs[0].WithDataType(desc.dst.data_type()));
  return WithDst(desc, OrLayoutOf(desc.dst, like));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<IntegerSumDesc>& request) {
  const IntegerSumDesc& desc = request.desc;
  const auto compute = [desc, type = desc.dst.data_type()](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float real = 0;
      for (size_t i = 0; i < desc.srcs.size(); ++i) {
        const MemoryDesc& src = desc.srcs[i];
        const void* elements = piece.Find(kArgMultipleSrc + static_cast<int>(i));
        const float integer = LoadElement(src.data_type(), elements, src.Offset(index));
        const float term = RealOf(integer, desc.scales[i], desc.zero_points[i]);
        real = i == 0 ? term : real + term;
      }
      if (desc.relu && !(real > 0)) real = 0;
      StoreElement(type, IntegerOf(real, desc.dst_scale, desc.dst_zero_point, type),
                   piece.Find(kArgDst), desc.dst.Offset(index));
    });
  };
  const auto terms = static_cast<int64_t>(desc.srcs.size());
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), {terms}}, compute);
}

}  // namespace tilewire::integer_sum
