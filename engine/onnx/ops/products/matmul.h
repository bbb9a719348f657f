// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices whose right side is computed, or is more than one matrix, and of integers
// and f64. They become the operation Matmul; a single constant matrix becomes an InnerProduct's
// weights.
#ifndef ENGINE_ONNX_OPS_PRODUCTS_MATMUL_H_
#define ENGINE_ONNX_OPS_PRODUCTS_MATMUL_H_

#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// The product of any two tensors by numpy's rule: one of rank 1 is a row or a column, dropped
// again.
absl::StatusOr<Operand> MatMulOf(NodeContext& context, const Operand& left, const Operand& right,
                                 absl::string_view suffix = "");
// The product of computed bytes as it is in s32; `a` and `b` have rank 2 or more, scales are 1.
absl::StatusOr<Operand> IntegerSumsOf(NodeContext& context, const Operand& a, const Operand& b,
                                      const network::IntegerMatmul& product);
// The type in which the product of inputs 0 and 1 is computed: f32, or the type of their own that
// they have.
DataType TypeOfProduct(const NodeContext& context);
absl::Status BuildComputedMatMul(NodeContext& context);

// Gemm with a computed B, or of integers or f64.
absl::Status BuildComputedGemm(NodeContext& context);

// dst = product + beta * C (Gemm's input 2), broadcast.
absl::Status AddC(NodeContext& context, const Operand& product, float beta);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_PRODUCTS_MATMUL_H_
