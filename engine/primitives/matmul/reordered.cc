// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/matmul/implementations.h"

namespace tilewire::matmul {

absl::StatusOr<MatmulDesc> ResolveReordered(const Request<MatmulDesc>& request) {
  return ResolveBetweenReorders(MatmulImplementations(), OpenTensors(request.desc), request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const Request<MatmulDesc>& request) {
  return CreateBetweenReorders(MatmulImplementations(), OpenTensors(request.desc), request);
}

}  // namespace tilewire::matmul
