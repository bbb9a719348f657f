// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_

#include "engine/primitives/inner_product/inner_product.h"

namespace tilewire::inner_product {

// The f32 rows: an inner product over an image's elements in the order in which they lie in memory.
//
// The weights are packed in that same order, with a vector of output channels innermost: for src in
// nc [O/16][I][16o], for src in nChw16c [O/16][I/16][H][W][16i][16o]. An image is then one flat row
// of K elements and the weights of 16 output channels one flat K x 16 block, whatever the layout:
// to flatten an image never takes a reorder.
// The weights' layout for vectors of `lanes` output channels; refuses an image that is not dense.
TILEWIRE_ROW(InnerProductDesc, Packed);

// The same by products of bf16 numbers, two at a time (vdpbf16ps): images are rounded in the
// scratchpad, weights where they are packed, in pairs of the numbers that follow each other in an
// image: [O/16][I/2][16o][2i], [O/16][I/16][H][W][8i][16o][2i]. Numbers from 3.396e38 on count as
// infinite, denormals as 0. Takes images whose innermost size is even, and nc.
TILEWIRE_ROW(InnerProductDesc, Pairs);

// The integer inner product: u8 or s8 sources, s8 weights. The row's instruction set decides the
// registers.
//
//   src      nhwc or nc, images any distance apart, read in place where the channels are a multiple
//            of 4 and, with VNNI, the type is u8; any other layout is copied first
//   weights  in the order of nhwc, input channels in quads: AB16a4b, AcdB16a4b (8 for 16 with
//            AVX2); with VNNI and an s8 source they carry their compensation (memory_desc.h)
//   dst      nc, rows any distance apart
//
// On matrix tiles (AMX): at least 8 images of 32 channels, read in place, u8 or s8, where channels
// are a multiple of 64; weights AB16b16a4b, AcdB16b16a4b, without compensation.
//
// Sums are taken modulo 2^32: they are exact up to 65793 products.
TILEWIRE_ROW(InnerProductDesc, IntegerPacked);

// f32 by products of planes of bf16 on matrix tiles (AMX): one with the precision bf16, three with
// fast, six with exact (engine/kernels/planes/plane_tile.h says how large their errors are).
// Tensors are those of the packed rows, and `any` weights become planes of theirs (plane_layout.h),
// 2 bytes per plane and number. The number of images decides nothing, as bits may not depend on it:
// for one image the weights that are read take about as long as their products.
TILEWIRE_ROW(InnerProductDesc, Planes);

// f32 by weights in plain layouts: the outputs of one input follow each other (io, hwio), or the
// inputs of one output do (oi, oihw), in the order of an image of src; at least 64 of them in the
// second case. Reordering them would take longer than the product of a few images. Not with the
// precision bf16, whose products pay for it.
TILEWIRE_ROW(InnerProductDesc, PlainWeights);

TILEWIRE_ROW(InnerProductDesc, Reference);

// The gradients as products of matrices that are read where they lie (backward.cc): dense images
// without padding, weights in their order, outputs outermost.
TILEWIRE_ROW(InnerProductDesc, Backward);

TILEWIRE_ROW(InnerProductDesc, ReferenceBackward);

// kUnimplemented  a tensor that is not f32, or output scales: what every forward row refuses
absl::Status RequireForwardF32(const InnerProductDesc& desc, const Attributes& attributes);

// src is u8 or s8.
bool IsInteger(const InnerProductDesc& desc);

// kUnimplemented  types other than u8, s8 x s8 + f32, s32 -> u8, s8, s32, f32
absl::Status RequireForwardInteger(const InnerProductDesc& desc);

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_IMPLEMENTATIONS_H_
