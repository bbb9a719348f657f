// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of inner_product.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_

#include "engine/primitives/inner_product/inner_product.h"

namespace tilewire::inner_product {

absl::StatusOr<InnerProductDesc> ResolveReference(const InnerProductDesc& desc,
                                                  const Attributes& attributes,
                                                  const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const InnerProductDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// kUnimplemented  a tensor that is not f32, output scales, or backward: what every row refuses
absl::Status RequireForwardF32(const InnerProductDesc& desc, const Attributes& attributes);

// src is u8 or s8.
bool IsInteger(const InnerProductDesc& desc);

// kUnimplemented  types other than u8, s8 x s8 + f32, s32 -> u8, s8, s32, f32, or backward
absl::Status RequireForwardInteger(const InnerProductDesc& desc);

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_
