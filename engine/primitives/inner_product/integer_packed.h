// SPDX-License-Identifier: Apache-2.0
//
// The integer inner product: u8 or s8 sources, s8 weights. The row's instruction set decides the
// registers.
//
//   src      nhwc or nc, images any distance apart, read in place where the channels are a multiple
//            of 4 and, with VNNI, the type is u8; any other layout is copied first
//   weights  in the order of nhwc, input channels in quads: AB16a4b, AcdB16a4b (8 for 16 with
//            AVX2); with VNNI and an s8 source they carry their compensation (memory_desc.h)
//   dst      nc, rows any distance apart
//
// Sums are taken modulo 2^32: they are exact up to 65793 products.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_INTEGER_PACKED_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_INTEGER_PACKED_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/integer_tile.h"
#include "engine/primitives/inner_product/inner_product.h"

namespace tilewire::inner_product {

// See implementation.h.
absl::StatusOr<InnerProductDesc> ResolveIntegerPacked(const InnerProductDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerPacked(const InnerProductDesc& desc,
                                                               const Attributes& attributes,
                                                               const ImplementationFacts& facts);

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_INTEGER_PACKED_H_
