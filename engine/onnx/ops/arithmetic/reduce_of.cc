// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/arithmetic/reduce_of.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/integer_reduce.h"

namespace tilewire::reader {

absl::StatusOr<Operand> ReduceOf(NodeContext& context, network::Reduce::Function function,
                                 const Operand& src, const std::vector<bool>& reduced,
                                 absl::string_view suffix) {
  if (context.TypeOf(src) != DataType::kF32)
    return ReduceInType(context, function, src, reduced, suffix);
  Dims dims = src.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (reduced[d]) dims[d] = 1;
  }
  ABSL_ASSIGN_OR_RETURN(const network::ValueId value, context.AsValue(src));
  return context.EmitOperand(network::Reduce{function}, {value}, std::move(dims), suffix);
}

}  // namespace tilewire::reader
