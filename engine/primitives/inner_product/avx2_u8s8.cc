// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer inner product over 16 registers of 8 lanes: products of 16-bit numbers.
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/integer_packed.h"

namespace tilewire::inner_product {
absl::StatusOr<InnerProductDesc> ResolveAvx2U8S8(const InnerProductDesc& desc, const Attributes&) {
  return ResolveIntegerPacked(desc, kAvx2Integers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2U8S8(const InnerProductDesc& desc,
                                                          const Attributes& attributes,
                                                          absl::string_view name) {
  return CreateIntegerPacked(desc, attributes, name, kAvx2Integers);
}

}  // namespace tilewire::inner_product
