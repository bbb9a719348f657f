// SPDX-License-Identifier: Apache-2.0
//
// The f32 rows: an inner product over an image's elements in the order in which they lie in memory.
//
// The weights are packed in that same order, with a vector of output channels innermost: for src in
// nc [O/16][I][16o], for src in nChw16c [O/16][I/16][H][W][16i][16o]. An image is then one flat row
// of K elements and the weights of 16 output channels one flat K x 16 block, whatever the layout:
// to flatten an image never takes a reorder.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_H_

#include "engine/jit/vector_unit.h"
#include "engine/primitives/inner_product/inner_product.h"

namespace tilewire::inner_product {

// The weights' layout for vectors of `lanes` output channels; refuses an image that is not dense.
absl::StatusOr<InnerProductDesc> ResolvePacked(const InnerProductDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreatePacked(const InnerProductDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts);

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_PACKED_H_
