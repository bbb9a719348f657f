// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/element_types.h"

#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/typed_node.h"

namespace tilewire::reader {
namespace {

// A loop's body takes the number of the run, the condition, and what goes from run to run.
void EnterLoop(const TypedNode& loop, const Body& body, std::vector<ElementType>* types) {
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    if (body.inputs[i] == kNoTensor) continue;
    const ElementType carried = i >= 2 ? loop.input(i) : ElementType(DataType::kBool);
    (*types)[body.inputs[i]] = i == 0 ? ElementType(DataType::kS64) : carried;
  }
}

ElementType TypeOf(const network::Constant& initializer) {
  return initializer.small == SmallType::kNone ? ElementType(initializer.declared)
                                               : ElementType(initializer.small);
}

void AddResults(const std::vector<Node>& nodes, std::vector<ElementType>* types) {
  for (const Node& node : nodes) {
    const TypedNode typed(node, *types);
    for (const auto& [name, body] : node.bodies) {
      EnterLoop(typed, *body, types);
      AddResults(body->nodes, types);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoTensor)
        (*types)[node.outputs[i]] = FindOp(node)->result_type(typed, static_cast<int>(i));
    }
  }
}

}  // namespace

std::vector<ElementType> ElementTypes(const ModelGraph& graph) {
  std::vector<ElementType> types(graph.tensor_names.size());
  for (size_t id = 0; id < types.size(); ++id) {
    if (graph.initializers[id] != nullptr) types[id] = TypeOf(*graph.initializers[id]);
  }
  for (const DeclaredTensor& input : graph.inputs) types[input.id] = input.type;
  AddResults(graph.nodes, &types);
  return types;
}

}  // namespace tilewire::reader
