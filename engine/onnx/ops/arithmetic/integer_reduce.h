// SPDX-License-Identifier: Apache-2.0
//
// Reductions of integers and f64 in their own type: sums are products with ones, maxima and minima
// the best elements of lines, products those of halves of lines.
#ifndef ENGINE_ONNX_OPS_ARITHMETIC_INTEGER_REDUCE_H_
#define ENGINE_ONNX_OPS_ARITHMETIC_INTEGER_REDUCE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// ReduceOf() (reduce_of.h) of a value of a type other than f32. Sums and products wrap
// around.
//   kUnimplemented  means, and a tensor without elements
absl::StatusOr<Operand> ReduceInType(NodeContext& context, network::Reduce::Function function,
                                     const Operand& src, const std::vector<bool>& reduced,
                                     absl::string_view suffix);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ARITHMETIC_INTEGER_REDUCE_H_
