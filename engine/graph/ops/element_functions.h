// SPDX-License-Identifier: Apache-2.0
//
// From functions of single elements to operations, for the operators that are one and for those
// that are made of some.
#ifndef ENGINE_GRAPH_OPS_ELEMENT_FUNCTIONS_H_
#define ENGINE_GRAPH_OPS_ELEMENT_FUNCTIONS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

// function(operands...), broadcast. Of constants alone it is folded; a sum or product with one
// number, or with one a channel, becomes the operation that can be fused.
//   kInvalidArgument  dims that do not fit, integers mixed with floats, an overflow while folding
//   kUnimplemented    what integers have no function for
absl::StatusOr<Operand> ElementwiseOf(NodeContext& context, const Elementwise& function,
                                      const std::vector<Operand>& operands,
                                      absl::string_view suffix = "");

// An elementwise function of the kernels on a value.
absl::StatusOr<Operand> ActivationOf(NodeContext& context, jit::EltwiseOp op, const Operand& src,
                                     absl::string_view suffix = "");

// ElementwiseOf() and ActivationOf() of input 0, as the node's output.
absl::Status FinishElementwise(NodeContext& context, const Elementwise& function);
absl::Status FinishActivation(NodeContext& context, const jit::EltwiseOp& op);

// Along the marked dimensions, which are kept with size 1.
absl::StatusOr<Operand> ReduceOf(NodeContext& context, Reduce::Function function,
                                 const Operand& src, const std::vector<bool>& reduced,
                                 absl::string_view suffix = "");

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_ELEMENT_FUNCTIONS_H_
