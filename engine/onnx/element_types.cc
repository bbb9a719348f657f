// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/element_types.h"

#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/typed_node.h"

namespace tilewire::reader {
namespace {

// A loop's body takes the number of the run, the condition, and what goes from run to run.
void EnterLoop(const TypedNode& loop, const Body& body, std::vector<DataType>* types) {
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    if (body.inputs[i] == kNoTensor) continue;
    const DataType carried = i >= 2 ? loop.input(i) : DataType::kBool;
    (*types)[body.inputs[i]] = i == 0 ? DataType::kS64 : carried;
  }
}

void AddResults(const std::vector<Node>& nodes, std::vector<DataType>* types) {
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

std::vector<DataType> ElementTypes(const ModelGraph& graph) {
  std::vector<DataType> types(graph.tensor_names.size(), DataType::kF32);
  for (size_t id = 0; id < types.size(); ++id) {
    if (graph.initializers[id] != nullptr) types[id] = graph.initializers[id]->declared;
  }
  for (const DeclaredTensor& input : graph.inputs) types[input.id] = input.type;
  AddResults(graph.nodes, &types);
  return types;
}

}  // namespace tilewire::reader
