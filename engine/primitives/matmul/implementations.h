// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_

#include "engine/primitives/matmul/matmul.h"

namespace tilewire::matmul {

// Matrix product by generated tiles (kernels/strided_product.h), shared by avx512_f32 and avx2_f32.
// Weights are read where they lie if their rows are neighbours in memory, or if their columns and
// the rows of src are and K is at least 64; others are copied to the scratchpad first. Products of
// a batch with one matrix of weights are one product where their rows are evenly spaced; small ones
// share a piece of work.
TILEWIRE_ROW(MatmulDesc, Tiles);

// f32 by products of planes of bf16 on matrix tiles (AMX): one with the precision bf16, three with
// fast, six with exact (engine/kernels/planes/plane_tile.h says how large their errors are).
// Tensors as above, but that elements of a row of src follow each other. M and the batch decide
// nothing, as bits may not depend on them.
TILEWIRE_ROW(MatmulDesc, Planes);

// u8 and s8, by tiles of integer_tile.h or matrix_tile.h. Weights of any strides are packed in
// every run (integer_plan.h). src is read where it lies if the bytes of a row follow each other,
// their number is a multiple of 4 and, with VNNI, the type is u8; otherwise it is copied. On matrix
// tiles: at least 8 rows of 32 bytes, u8 or s8, in place where they are a multiple of 64.
TILEWIRE_ROW(MatmulDesc, IntegerTiles);

// Integers of 16 bits and more and f64, each row of dst by rows of weights, in plain loops. Takes
// row-major tensors.
TILEWIRE_ROW(MatmulDesc, TypedRows);

TILEWIRE_ROW(MatmulDesc, Reference);

// The gradients as a product of the same table, of transposed matrices (backward.cc): of plain
// tensors, where the gradient's own matrices are not broadcast, or where all of the batch shares
// the weights and rows are evenly spaced.
TILEWIRE_ROW(MatmulDesc, Backward);

TILEWIRE_ROW(MatmulDesc, ReferenceBackward);

// Whether the types are f64 or integers of 16 bits and more, and nothing is added to the products.
absl::Status RequireTyped(const MatmulDesc& desc, const Attributes& attributes);

// src is u8 or s8.
bool IsInteger(const MatmulDesc& desc);

// kUnimplemented  types other than u8, s8 x u8, s8 -> u8, s8, s32, f32; a bias; several scales
absl::Status RequireInteger(const MatmulDesc& desc, const Attributes& attributes);

// Whether dst holds the sums of 8-bit integers themselves.
bool KeepsSums(const MatmulDesc& desc, const Attributes& attributes);

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
