// SPDX-License-Identifier: Apache-2.0
//
// Packed weights, 8 output channels a vector.
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/packed.h"

namespace tilewire::inner_product {

absl::StatusOr<InnerProductDesc> ResolveAvx2F32(const InnerProductDesc& desc,
                                                const Attributes& attributes) {
  return ResolvePacked(desc, attributes, 8);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const InnerProductDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name) {
  return CreatePacked(desc, attributes, name, 8);
}

}  // namespace tilewire::inner_product
