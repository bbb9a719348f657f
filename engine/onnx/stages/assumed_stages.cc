// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/stages/assumed_stages.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/stages/held_tensor.h"

namespace tilewire::reader {
namespace {

constexpr int kMostStages = 256;

Dims WithFound(Dims dims, size_t axis, int64_t found) {
  if (axis < dims.size()) dims[axis] = std::min(dims[axis], found);
  return dims;
}

// Goes from a first stage to the last one.
class Walk {
 public:
  Walk(const ModelGraph& graph, const AssumedSizes& assumed, const Interrupted& interrupted = {})
      : graph_(graph), assumed_(assumed), interrupted_(interrupted) {}

  // Copies of the stages after the first one go to `passed`, which may be null.
  absl::StatusOr<Stage> ToLast(Stage stage, std::vector<Stage>* passed = nullptr) {
    while (!stage.cut->is_last()) {
      if (++stages_ > kMostStages) {
        return Unimplemented("sizes have to be waited for more than ", kMostStages, " times");
      }
      std::vector<StagedTensor> computed;
      for (const Node* node : stage.cut->late)
        ABSL_RETURN_IF_ERROR(AddResults(*node, *stage.cut, &computed));
      std::vector<ConstantPtr> known;
      for (TensorId id : stage.cut->known) known.push_back(Elements(OutputOf(*stage.cut, id)));
      ABSL_ASSIGN_OR_RETURN(
          stage, BuildStage(graph_, StartAfter(*stage.cut, computed, known), interrupted_));
      if (passed != nullptr) passed->push_back(stage);
    }
    return stage;
  }

 private:
  ConstantPtr Elements(const StagedTensor& tensor) const {
    const std::string& name = graph_.tensor_names[tensor.id];
    const int64_t count = ElementCount(tensor.dims).value_or(0);
    if (tensor.is_integer)
      return MakeInts(name, tensor.dims, std::vector<int64_t>(count, assumed_.element));
    const float element = static_cast<float>(assumed_.element);
    return MakeFloats(name, tensor.dims, std::vector<float>(count, element));
  }

  absl::Status AddResults(const Node& node, const Cut& cut, std::vector<StagedTensor>* computed) {
    if (node.op() == "Loop") return AddLoop(node, cut, computed);
    const StagedTensor src = OutputOf(cut, node.inputs[0]);
    const int64_t count = ElementCount(src.dims).value_or(0);
    const int64_t found = std::min(assumed_.found, count);
    int64_t axis = -1;
    if (node.HasAttribute("axis")) {
      ABSL_ASSIGN_OR_RETURN(axis, node.Int("axis", 0));
      axis += axis < 0 ? static_cast<int64_t>(src.dims.size()) : 0;
    }
    const auto add = [&](size_t i, Dims dims, bool is_element) {
      if (!node.HasOutput(i)) return;
      computed->push_back({node.outputs[i], is_element ? src.type : DataType::kF32,
                           is_element ? src.is_integer : true, std::move(dims)});
    };
    if (const auto late_dims = FindOp(node)->late_dims; late_dims != nullptr) {
      add(0, late_dims(src.dims), /*is_element=*/true);
    } else if (node.op() == "NonZero") {
      add(0, {static_cast<int64_t>(src.dims.size()), found}, /*is_element=*/false);
    } else if (node.op() == "NonMaxSuppression") {
      add(0, {found, 3}, /*is_element=*/false);
    } else {
      const Dims all = axis < 0 ? Dims{count} : src.dims;
      const size_t along = axis < 0 ? 0 : static_cast<size_t>(axis);
      if (along >= all.size()) return node.Invalid("axis ", axis);
      add(0, WithFound(all, along, found), /*is_element=*/true);
      add(1, {std::min(found, all[along])}, /*is_element=*/false);
      add(2, {all[along]}, /*is_element=*/false);
      add(3, {std::min(found, all[along])}, /*is_element=*/false);
    }
    return absl::OkStatus();
  }

  absl::Status AddLoop(const Node& node, const Cut& cut, std::vector<StagedTensor>* computed) {
    std::vector<StagedTensor> carried;
    for (size_t i = 2; i < node.inputs.size(); ++i) {
      if (!node.HasInput(i)) return node.Invalid("input ", i, " is missing");
      carried.push_back(OutputOf(cut, node.inputs[i]));
    }
    ABSL_ASSIGN_OR_RETURN(StageStart start, BodyStart(node, cut, carried));
    ABSL_ASSIGN_OR_RETURN(Stage first, BuildStage(graph_, std::move(start), interrupted_));
    ABSL_ASSIGN_OR_RETURN(const Stage last, ToLast(std::move(first)));
    const std::vector<TensorId>& results = last.cut->graph.outputs;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoTensor) continue;
      StagedTensor result = OutputOf(*last.cut, results[i + 1]);
      result.id = node.outputs[i];
      if (i >= carried.size()) result.dims.insert(result.dims.begin(), assumed_.found);
      computed->push_back(std::move(result));
    }
    return absl::OkStatus();
  }

  const ModelGraph& graph_;
  const AssumedSizes assumed_;
  const Interrupted interrupted_;
  int stages_ = 0;
};

}  // namespace

LaterStages StagesAfter(const ModelGraph& graph, const Stage& first,
                        const Interrupted& interrupted) {
  LaterStages farthest;
  bool any = false;
  for (const AssumedSizes& assumed :
       {AssumedSizes{40, 3}, AssumedSizes{3, 1}, AssumedSizes{1, 2}}) {
    LaterStages later;
    later.status =
        Walk(graph, assumed, interrupted).ToLast({{}, first.cut}, &later.stages).status();
    if (!any || later.status.ok() || later.stages.size() > farthest.stages.size())
      farthest = std::move(later);
    any = true;
    if (farthest.status.ok()) break;
  }
  return farthest;
}

StagedTensor OutputOf(const Cut& last, TensorId id) {
  if (const ConstantPtr& constant = last.tensors[id].constant; constant != nullptr)
    return {id, DataType::kF32, !constant->is_float, constant->dims};
  for (const StagedTensor& one : last.kept) {
    if (one.id == id) return one;
  }
  return {id, DataType::kF32, false, {}};
}

absl::StatusOr<std::vector<Dims>> OutputDimsOf(const ModelGraph& graph,
                                               const std::vector<Operand>& folded,
                                               absl::Span<const Dims> input_dims,
                                               const AssumedSizes& assumed) {
  ABSL_ASSIGN_OR_RETURN(Stage first, BuildFirstStage(graph, folded, input_dims));
  ABSL_ASSIGN_OR_RETURN(const Stage last, Walk(graph, assumed).ToLast(std::move(first)));
  return last.network.output_dims;
}

}  // namespace tilewire::reader
