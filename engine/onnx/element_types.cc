// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/element_types.h"

#include <string>

#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/file/stored_type.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::graph {
namespace {

// The type that a tensor of the file is read as.
DataType TypeInFile(int onnx_type) {
  const std::optional<StoredType> stored = StoredType::Of(onnx_type);
  return stored ? stored->held() : DataType::kF32;
}

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

DataType TypedNode::body_output(absl::string_view attribute, size_t i) const {
  const auto body = node.bodies.find(std::string(attribute));
  if (body == node.bodies.end() || i >= body->second->outputs.size()) return kAbsent;
  const TensorId id = body->second->outputs[i];
  return id == kNoTensor ? kAbsent : types_[id];
}

DataType TypedNode::tensor(absl::string_view attribute) const {
  if (const auto dense = node.Tensor(attribute); dense.ok() && *dense != nullptr)
    return TypeInFile((*dense)->data_type());
  const auto sparse = node.SparseTensor(attribute);
  if (!sparse.ok() || *sparse == nullptr) return kAbsent;
  return TypeInFile((*sparse)->values().data_type());
}

DataType TypedNode::named(absl::string_view attribute, DataType absent) const {
  const int64_t number = node.Int(attribute, 0).value_or(0);
  return number == 0 ? absent : TypeOfElements(number).value_or(kAbsent);
}

std::vector<DataType> ElementTypes(const ModelGraph& graph) {
  std::vector<DataType> types(graph.tensor_names.size(), DataType::kF32);
  for (size_t id = 0; id < types.size(); ++id) {
    if (graph.initializers[id] != nullptr) types[id] = graph.initializers[id]->declared;
  }
  for (const DeclaredTensor& input : graph.inputs) types[input.id] = input.type;
  AddResults(graph.nodes, &types);
  return types;
}

}  // namespace tilewire::graph
