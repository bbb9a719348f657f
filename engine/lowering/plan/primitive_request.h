// SPDX-License-Identifier: Apache-2.0
//
// The request that a step's primitive was created from. It is kept while a plan is built, so that
// the primitive can be created again for other layouts of its tensors (restride.h) or for some rows
// of them (band_plan.h).
#ifndef ENGINE_LOWERING_PLAN_PRIMITIVE_REQUEST_H_
#define ENGINE_LOWERING_PLAN_PRIMITIVE_REQUEST_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/primitives/primitives.h"

namespace tilewire::lowering {

struct PrimitiveRequest {
  OpDesc desc;
  Attributes attributes;
  std::shared_ptr<const Primitive> whole;  // the result of the request, for whole tensors
};

using PrimitiveRequests = absl::flat_hash_map<const Primitive*, PrimitiveRequest>;

// `only`: CreateOptions::only.
using RequestPrimitive = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Primitive>>(
    const OpDesc&, const Attributes&, absl::string_view only)>;

// A primitive like `request.whole` for `desc`, by the same implementation, also where estimates
// prefer another one for such strides or so few rows.
//   kUnimplemented  that implementation does not take it
absl::StatusOr<std::shared_ptr<const Primitive>> RequestLike(const PrimitiveRequest& request,
                                                             const OpDesc& desc,
                                                             RequestPrimitive create);

// The same convolution, pooling or reorder with `changed` layouts of some arguments, of the same
// dims and types, and the others as the first primitive resolved them.
//   kUnimplemented  another operation, or its implementation does not take them
absl::StatusOr<std::shared_ptr<const Primitive>> RequestAgain(const PrimitiveRequest& request,
                                                              absl::Span<const ArgDesc> changed,
                                                              RequestPrimitive create);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_PRIMITIVE_REQUEST_H_
