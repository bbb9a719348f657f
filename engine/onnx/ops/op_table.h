// SPDX-License-Identifier: Apache-2.0
//
// The table of supported ONNX operators. Each file of this folder adds the rows of its
// operators (ops.h); an operator without a row is refused when a model is opened.
#ifndef ENGINE_ONNX_OPS_OP_TABLE_H_
#define ENGINE_ONNX_OPS_OP_TABLE_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/memory/data_type.h"
#include "engine/onnx/file/node.h"
#include "engine/onnx/ops/op_row.h"

namespace tilewire::reader {

// All rows, family by family.
const std::vector<OpRow>& OpTable();

// The row of the node's operator and domain; nullptr if there is none.
const OpRow* FindOp(const Node& node);

//   kUnimplemented    an operator or domain without a row; the message names node, operator, domain
//                     and opset
//   kInvalidArgument  too many or too few inputs, no output, attributes that the operator does not
//                     have, an opset before the operator's first
absl::Status CheckSupported(const Node& node);

// Whether the inputs that the operator needs are connected: a name may be empty, and that of a
// function's input stands for nothing where the call leaves the input out. Operators that take any
// number of inputs need all that are named.
//   kInvalidArgument  one is missing
absl::Status CheckInputsPresent(const Node& node);

// Whether a tensor of type `first` may be the node's input 0.
//   kUnimplemented    integers or truth values, of an operator of real numbers
absl::Status CheckReals(const Node& node, DataType first);

// Whether the operator takes inputs of these types, by TensorId.
//   kUnimplemented    one is of a small type (element_type.h), which it does not take
absl::Status CheckSmall(const Node& node, const std::vector<ElementType>& types);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_OP_TABLE_H_
