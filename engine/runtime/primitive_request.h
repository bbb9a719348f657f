// SPDX-License-Identifier: Apache-2.0
//
// What a step's primitive was created from, kept while a plan is built: to create it again for a
// part of its tensors, or for other layouts of them.
#ifndef ENGINE_RUNTIME_PRIMITIVE_REQUEST_H_
#define ENGINE_RUNTIME_PRIMITIVE_REQUEST_H_

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/primitives/primitives.h"

namespace tilewire::runtime {

struct PrimitiveRequest {
  OpDesc desc;
  Attributes attributes;
  std::shared_ptr<const Primitive> whole;  // what came of it, on whole tensors
};

using PrimitiveRequests = absl::flat_hash_map<const Primitive*, PrimitiveRequest>;

using RequestPrimitive = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Primitive>>(
    const OpDesc&, const Attributes&)>;

// A convolution, pooling or reorder once more, with these layouts of some arguments (of the same
// sizes and types) and all others as they are.
//   kUnimplemented  another operation, or not by the same implementation
absl::StatusOr<std::shared_ptr<const Primitive>> RequestAgain(const PrimitiveRequest& request,
                                                              absl::Span<const ArgDesc> changed,
                                                              RequestPrimitive create);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PRIMITIVE_REQUEST_H_
