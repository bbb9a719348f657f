// SPDX-License-Identifier: Apache-2.0
//
// Packed weights, 16 output channels a vector.
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed.h"

namespace tilewire::inner_product {

absl::StatusOr<InnerProductDesc> ResolveAvx512F32(const InnerProductDesc& desc,
                                                  const Attributes& attributes) {
  return ResolvePacked(desc, attributes, 16);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const InnerProductDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name) {
  return CreatePacked(desc, attributes, name, 16);
}

}  // namespace tilewire::inner_product
