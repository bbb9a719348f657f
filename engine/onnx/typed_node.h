// SPDX-License-Identifier: Apache-2.0
//
// A node as an operator sees it that is asked for the types of its results.
#ifndef ENGINE_ONNX_TYPED_NODE_H_
#define ENGINE_ONNX_TYPED_NODE_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/onnx/file/element_type.h"
#include "engine/onnx/file/node.h"

namespace tilewire::reader {

// A node and the types of the tensors that come before it.
class TypedNode {
 public:
  TypedNode(const Node& node, const std::vector<ElementType>& types) : node(node), types_(types) {}

  const Node& node;

  // Input i; kF32 where it is left out.
  ElementType input(size_t i) const { return node.HasInput(i) ? types_[node.inputs[i]] : kAbsent; }
  // Output i of a graph in the node's attribute; kF32 where there is none.
  ElementType body_output(absl::string_view attribute, size_t i) const;
  // The type of the tensor, maybe a sparse one, that an attribute holds; kF32 where there is none.
  ElementType tensor(absl::string_view attribute) const;
  // The type that an attribute names by ONNX's number, or `absent`.
  ElementType named(absl::string_view attribute, ElementType absent) const;

 private:
  static constexpr ElementType kAbsent = ElementType();

  const std::vector<ElementType>& types_;  // by TensorId
};

// The type of output i of a node by ONNX's rules: a column of the operators' table (ops/op_row.h).
using ResultType = ElementType (*)(const TypedNode& node, int i);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_TYPED_NODE_H_
