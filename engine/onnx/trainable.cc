// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/trainable.h"

#include "absl/algorithm/container.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::reader {
namespace {

// Whether the operator reads its input's dims and none of its elements.
bool TakesDimsOnly(const Node& node) { return node.op() == "Shape" || node.op() == "Size"; }

class TrainableSearch {
 public:
  TrainableSearch(const ModelGraph& graph, const std::vector<Operand>& folded)
      : graph_(graph),
        folded_(folded),
        is_computed_(graph.tensor_names.size(), false),
        may_vary_(graph.tensor_names.size(), true) {}

  std::vector<bool> Run() {
    MarkComputed();
    for (const DeclaredTensor& output : graph_.outputs) {
      if (!is_computed_[output.id]) may_vary_[output.id] = false;
    }
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) Limit(*node);
    std::vector<bool> trainable(graph_.tensor_names.size(), false);
    for (size_t id = 0; id < trainable.size(); ++id) {
      trainable[id] = graph_.initializers[id] != nullptr && Learns(id) &&
                      IsWeights(*graph_.initializers[id], /*fewest=*/1);
    }
    for (const Node& node : graph_.nodes) {
      if (!IsConstantOfFile(node) || !Learns(node.outputs[0])) continue;
      const ConstantPtr& constant = folded_[node.outputs[0]].constant;
      trainable[node.outputs[0]] = constant != nullptr && IsWeights(*constant, /*fewest=*/2);
    }
    return trainable;
  }

 private:
  bool Learns(TensorId id) const { return may_vary_[id] && graph_.is_read[id]; }

  static bool IsWeights(const Constant& constant, int64_t fewest) {
    const bool is_real = IsComputedInF32(constant.declared) || constant.declared == DataType::kF64;
    return constant.is_float && is_real && !constant.is_sparse &&
           constant.small == SmallType::kNone && constant.count() >= fewest;
  }

  // A node of the main graph that holds a dense tensor: one of a function has no place of its own
  // in the file.
  bool IsConstantOfFile(const Node& node) const {
    return node.op() == "Constant" && node.HasAttribute("value") &&
           absl::c_any_of(graph_.proto->node(), [&node](const onnx::NodeProto& proto) {
             return &proto == &node.proto();
           });
  }

  // Marks what depends on the model's inputs.
  void MarkComputed() {
    for (const DeclaredTensor& input : graph_.inputs) is_computed_[input.id] = true;
    const auto is_computed = [this](TensorId id) { return id != kNoTensor && is_computed_[id]; };
    for (const Node& node : graph_.nodes) {
      if (absl::c_none_of(node.inputs, is_computed) && absl::c_none_of(node.captures, is_computed))
        continue;
      for (TensorId id : node.outputs) {
        if (id != kNoTensor) is_computed_[id] = true;
      }
    }
  }

  void Keep(TensorId id) {
    if (id != kNoTensor) may_vary_[id] = false;
  }

  // Readers of the node's outputs come after it, and have been asked.
  void Limit(const Node& node) {
    for (TensorId id : node.captures) Keep(id);
    if (TakesDimsOnly(node)) return;
    const OpRow& row = *FindOp(node);
    const bool passes_on = absl::c_all_of(
        node.outputs, [this](TensorId id) { return id == kNoTensor || may_vary_[id]; });
    const bool is_known = absl::c_none_of(
        node.outputs, [this](TensorId id) { return id != kNoTensor && is_computed_[id]; });
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.HasInput(i)) continue;
      const bool takes =
          MayLearn(row, i) && (row.trains_one_number || !IsOneNumber(node.inputs[i]));
      if (!takes || (is_known && !passes_on)) Keep(node.inputs[i]);
    }
  }

  bool IsOneNumber(TensorId id) const {
    return folded_[id].constant != nullptr && folded_[id].constant->count() == 1;
  }

  const ModelGraph& graph_;
  const std::vector<Operand>& folded_;
  std::vector<bool> is_computed_;  // by TensorId
  std::vector<bool> may_vary_;     // by TensorId: as far as its readers have been asked
};

}  // namespace

std::vector<bool> TrainableTensors(const ModelGraph& graph, const std::vector<Operand>& folded) {
  return TrainableSearch(graph, folded).Run();
}

}  // namespace tilewire::reader
