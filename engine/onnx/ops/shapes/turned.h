// SPDX-License-Identifier: Apache-2.0
//
// A tensor with its dimensions in another order, for operators that need one on the way.
#ifndef ENGINE_ONNX_OPS_SHAPES_TURNED_H_
#define ENGINE_ONNX_OPS_SHAPES_TURNED_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// Dimension i of the result is dimension order[i] of `src`, which is of f32.
inline absl::StatusOr<Operand> TurnedOf(NodeContext& context, const Operand& src,
                                        std::vector<int> order, absl::string_view suffix) {
  Dims dims;
  for (int axis : order) dims.push_back(src.dims[axis]);
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        context.Emit(network::Transpose{std::move(order)}, {value}, dims, suffix));
  return Operand{nullptr, dst, std::move(dims)};
}

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SHAPES_TURNED_H_
