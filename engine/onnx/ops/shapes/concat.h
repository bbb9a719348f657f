// SPDX-License-Identifier: Apache-2.0
//
// Joins tensors along a dimension, for the operators that do so among other things.
#ifndef ENGINE_ONNX_OPS_SHAPES_CONCAT_H_
#define ENGINE_ONNX_OPS_SHAPES_CONCAT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// One after the other along `axis`, which is in [0, rank). Constants alone are folded; they are in
// memory.
//   kInvalidArgument  dims that differ elsewhere, integers beside real numbers
//   kUnimplemented    types that do not go together
absl::StatusOr<Operand> ConcatOf(NodeContext& context, const std::vector<Operand>& srcs, int axis,
                                 absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SHAPES_CONCAT_H_
