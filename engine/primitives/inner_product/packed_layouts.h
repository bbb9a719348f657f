// SPDX-License-Identifier: Apache-2.0
//
// The layouts of products of whole images, each a row of neighbours in memory, and packed weights.
// Pure functions.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_LAYOUTS_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_LAYOUTS_H_

#include <string>

#include "absl/status/status.h"
#include "engine/primitives/inner_product/inner_product.h"

namespace tilewire::inner_product {

// The pattern of the weights: output channels outermost, then src's own order, then a vector of
// output channels.
std::string PackedPattern(const MemoryDesc& src, int lanes);

// Makes layouts of src, dst and bias of those that may be `any`.
//   kUnimplemented  images are not dense, rows of dst or the bias have gaps, there is nothing to
//                   compute, or too much
absl::Status ResolveSrcAndDst(InnerProductDesc* desc);

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_LAYOUTS_H_
