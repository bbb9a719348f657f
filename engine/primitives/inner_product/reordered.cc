// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/inner_product/implementations.h"

namespace tilewire::inner_product {

absl::StatusOr<InnerProductDesc> ResolveReordered(const Request<InnerProductDesc>& request) {
  return ResolveBetweenReorders(InnerProductImplementations(), OpenTensors(request.desc), request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(
    const Request<InnerProductDesc>& request) {
  return CreateBetweenReorders(InnerProductImplementations(), OpenTensors(request.desc), request);
}

}  // namespace tilewire::inner_product
