// SPDX-License-Identifier: Apache-2.0
//
// The row of the integer inner product over 32 registers of 16 lanes, without VNNI: products of
// 16-bit numbers.
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/integer_packed.h"

namespace tilewire::inner_product {
absl::StatusOr<InnerProductDesc> ResolveAvx512U8S8(const InnerProductDesc& desc,
                                                   const Attributes&) {
  return ResolveIntegerPacked(desc, kAvx512Integers);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512U8S8(const InnerProductDesc& desc,
                                                            const Attributes& attributes,
                                                            absl::string_view name) {
  return CreateIntegerPacked(desc, attributes, name, kAvx512Integers);
}

}  // namespace tilewire::inner_product
