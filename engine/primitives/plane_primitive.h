// SPDX-License-Identifier: Apache-2.0
//
// A primitive that is a product by planes of bf16 (engine/kernels/planes/plane_product.h): `Rows`,
// a PlaneRows, says where the rows of its source lie. It is made for each execution, from what is
// fixed of them and from the first element of the source:
//
//   using Layout = ...;
//   Rows(const Layout& layout, const std::byte* src);
//
// Immutable once created.
#ifndef ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/plane_product.h"
#include "engine/memory/memory_desc.h"
#include "engine/memory/plane_layout.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// The descriptor that `asked`, the weights of a descriptor, becomes where the row reads `numbers`
// or the planes of them.
//   kUnimplemented  it is planes of other numbers, or others of them
inline absl::StatusOr<MemoryDesc> PlaneWeightsOf(const MemoryDesc& asked, const MemoryDesc& numbers,
                                                 const PlaneLayout& layout) {
  if (!asked.IsAny() && !asked.IsOpaque()) return numbers;
  ABSL_ASSIGN_OR_RETURN(MemoryDesc planes, MemoryDesc::CreatePlanes(numbers, layout));
  if (asked.IsAny() || asked == planes) return planes;
  return Unimplemented("weights are not ", planes.ToString());
}

// `info` without scratchpad and code, which are those of the product.
template <typename Rows>
std::unique_ptr<Primitive> MakePlanePrimitive(PrimitiveInfo info,
                                              const typename Rows::Layout& layout,
                                              std::unique_ptr<const PlaneProduct> product) {
  info.scratchpad_bytes = product->scratchpad_bytes();
  return MakeDriven(std::move(info), std::move(product),
                    [layout](const PlaneProduct& planes, const DrivenRun& run) {
                      const Rows src(layout, run.First<std::byte>(kArgSrc));
                      planes.Run({.src = &src,
                                  .weights = run.First<std::byte>(kArgWeights),
                                  .bias = run.First<std::byte>(kArgBias),
                                  .dst = run.First<std::byte>(kArgDst)},
                                 run.scratchpad, run.team);
                    });
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PLANE_PRIMITIVE_H_
