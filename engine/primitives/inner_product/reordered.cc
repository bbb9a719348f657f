// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reordered.h"

#include "engine/primitives/inner_product/implementations.h"

namespace tilewire::inner_product {

absl::StatusOr<InnerProductDesc> ResolveReordered(const InnerProductDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<InnerProductDesc> ways, OpenTensors(desc));
  return ResolveBetweenReorders<InnerProductDesc>(InnerProductImplementations(), desc, ways,
                                                  attributes, facts);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReordered(const InnerProductDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<InnerProductDesc> ways, OpenTensors(desc));
  return CreateBetweenReorders<InnerProductDesc>(InnerProductImplementations(), desc, ways,
                                                 attributes, facts);
}

}  // namespace tilewire::inner_product
