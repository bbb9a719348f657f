// SPDX-License-Identifier: Apache-2.0
//
// Makes operations of functions of single elements, for operators that are one such function or
// several. Most operators of one tensor are in functions.cc, the others in activation.cc and
// unary.cc, those of several in elementwise.cc.
#ifndef ENGINE_ONNX_OPS_ARITHMETIC_ELEMENT_FUNCTIONS_H_
#define ENGINE_ONNX_OPS_ARITHMETIC_ELEMENT_FUNCTIONS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// function(operands...), broadcast. Constants alone are folded; a sum or product with one number,
// or with one per channel, becomes an operation that can be fused.
//   kInvalidArgument  dims that do not fit, integers mixed with floats, an overflow while folding
//   kUnimplemented    functions that are not defined for integers
absl::StatusOr<Operand> ElementwiseOf(NodeContext& context, const Elementwise& function,
                                      const std::vector<Operand>& operands,
                                      absl::string_view suffix = "");

// ElementwiseOf() of input 0, as the node's output.
absl::Status FinishElementwise(NodeContext& context, const Elementwise& function);
// FinishElementwise() of a function of real numbers: that of integers is computed in f64, and the
// result is cut towards zero, to the type of input 0.
absl::Status FinishThroughReals(NodeContext& context, const Elementwise& function);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ARITHMETIC_ELEMENT_FUNCTIONS_H_
