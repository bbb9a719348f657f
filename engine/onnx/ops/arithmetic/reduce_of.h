// SPDX-License-Identifier: Apache-2.0
//
// Makes operations of reductions, of any type.
#ifndef ENGINE_ONNX_OPS_ARITHMETIC_REDUCE_OF_H_
#define ENGINE_ONNX_OPS_ARITHMETIC_REDUCE_OF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// The dims of a result: 1 in the place of the marked ones.
Dims ReducedDims(Dims dims, const std::vector<bool>& reduced);

// Reduces the marked dimensions, which are kept with size 1.
absl::StatusOr<Operand> ReduceOf(NodeContext& context, network::Reduce::Function function,
                                 const Operand& src, const std::vector<bool>& reduced,
                                 absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ARITHMETIC_REDUCE_OF_H_
