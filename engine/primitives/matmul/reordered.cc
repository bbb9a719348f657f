// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/matmul/implementations.h"

namespace tilewire::matmul {

absl::StatusOr<MatmulDesc> ResolveReordered(const MatmulDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<MatmulDesc> ways, OpenTensors(desc));
  return ResolveBetweenReorders<MatmulDesc>(MatmulImplementations(), desc, ways, attributes, facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<MatmulDesc> ways, OpenTensors(desc));
  return CreateBetweenReorders<MatmulDesc>(MatmulImplementations(), desc, ways, attributes, facts);
}

}  // namespace tilewire::matmul
