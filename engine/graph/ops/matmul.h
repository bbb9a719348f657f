// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices whose right side is computed, or is more than one matrix. They become the
// operation Matmul; a single constant matrix becomes an InnerProduct's weights.
#ifndef ENGINE_GRAPH_OPS_MATMUL_H_
#define ENGINE_GRAPH_OPS_MATMUL_H_

#include "engine/graph/specialization.h"

namespace tilewire::graph {

// The product of any two tensors by numpy's rule: one of rank 1 is a row or a column, dropped
// again.
absl::StatusOr<Operand> MatMulOf(NodeContext& context, const Operand& left, const Operand& right,
                                 absl::string_view suffix = "");
absl::Status BuildComputedMatMul(NodeContext& context);

// Gemm with a computed B.
absl::Status BuildComputedGemm(NodeContext& context);

// dst = product + beta * C (Gemm's input 2), broadcast.
absl::Status AddC(NodeContext& context, const Operand& product, float beta);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_MATMUL_H_
