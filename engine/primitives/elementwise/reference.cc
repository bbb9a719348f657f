// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::elementwise {

absl::StatusOr<ElementwiseDesc> ResolveReference(const ElementwiseDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.dst));
  for (const MemoryDesc& src : desc.srcs) ABSL_RETURN_IF_ERROR(RequireF32(src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  return WithDst(desc, OrPlain(desc.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ElementwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float x[3] = {};
      for (size_t s = 0; s < desc.srcs.size(); ++s) {
        const MemoryDesc& src = desc.srcs[s];
        x[s] = piece.Get<const float>(
            kArgMultipleSrc + static_cast<int>(s))[src.Offset(BroadcastIndex(src.dims(), index))];
      }
      piece.Get<float>(kArgDst)[desc.dst.Offset(index)] = jit::Evaluate(desc.function, x);
    });
  };
  return CreateReferencePrimitive(InfoOf(desc, attributes, facts), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::elementwise
