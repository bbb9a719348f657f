// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/stages/cut.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "engine/base/status_macros.h"
#include "engine/network/network_check.h"
#include "engine/onnx/deciding_inputs.h"
#include "engine/onnx/empty_tensors.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/problems.h"
#include "engine/onnx/specialization.h"

namespace tilewire::reader {
namespace {

// Builds one stage.
class StageBuilder {
 public:
  StageBuilder(const ModelGraph& graph, StageStart start, const Interrupted& interrupted)
      : graph_(graph),
        cut_(std::make_shared<Cut>()),
        available_(std::move(start.inputs)),
        interrupted_(interrupted),
        needed_(graph.tensor_names.size(), false) {
    cut_->graph = std::move(start.graph);
    cut_->tensors = std::move(start.tensors);
  }

  // The model's own inputs; conversions of them are part of the stage.
  absl::Status AddModelInputs(absl::Span<const Dims> dims) {
    return AddInputs(graph_, dims, {}, &cut_->tensors, &network_);
  }

  absl::StatusOr<Stage> Build() {
    for (size_t i = 0; i < available_.size(); ++i) given_[available_[i].id] = i;
    for (TensorId id : cut_->graph.outputs) Need(id);
    MarkNeeded(*cut_->graph.nodes);
    ABSL_RETURN_IF_ERROR(Visit(*cut_->graph.nodes));
    ABSL_RETURN_IF_ERROR(problems_.AsStatus());
    if (cut_->is_last() && cut_->graph.is_model) {
      ABSL_RETURN_IF_ERROR(SetOutputs(graph_, tensors(), &network_));
    } else {
      ABSL_RETURN_IF_ERROR(KeepWhatIsRead());
    }
    DropUnreadInputs();
    for (Operand& operand : tensors()) {
      if (operand.constant == nullptr) operand = Operand();
    }
    for (network::Value& value : network_.values) {
      if (value.dims.empty()) value.dims = {1};
    }
    ABSL_RETURN_IF_ERROR(ElideEmpty(&network_));
    ABSL_RETURN_IF_ERROR(network::CheckNetwork(network_));
    return Stage{std::move(network_), std::move(cut_)};
  }

 private:
  std::vector<Operand>& tensors() { return cut_->tensors; }

  // Makes a tensor that an earlier stage gave an input of the network, when it is first needed.
  void Need(TensorId id) {
    if (id == kNoTensor || tensors()[id].defined()) return;
    const auto given = given_.find(id);
    if (given == given_.end()) {
      needed_[id] = true;
      return;
    }
    const StagedTensor& one = available_[given->second];
    const ValueId value = static_cast<ValueId>(network_.values.size());
    network_.values.push_back({graph_.tensor_names[id], one.type, one.dims});
    network_.inputs.push_back(value);
    tensors()[id] = {nullptr, value, one.dims, one.is_integer};
    cut_->inputs.push_back(one);
  }

  // Marks what the nodes read for the sake of needed tensors, from the last node to the first.
  void MarkNeeded(const std::vector<Node>& nodes) {
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!IsNeeded(*node)) continue;
      if (const Body* branch = Branch(*node); branch != nullptr) {
        NeedBranch(*branch);
        continue;
      }
      for (TensorId id : node->inputs) Need(id);
      for (TensorId id : node->captures) Need(id);
    }
  }

  void NeedBranch(const Body& branch) {
    for (TensorId id : branch.outputs) Need(id);
    MarkNeeded(branch.nodes);
  }

  bool IsNeeded(const Node& node) {
    return absl::c_any_of(node.outputs, [this](TensorId id) {
      return id != kNoTensor && needed_[id] && !tensors()[id].defined();
    });
  }

  // The graph that an If takes, where that is known; else null.
  const Body* Branch(const Node& node) {
    if (node.op() != "If" || !node.HasInput(0)) return nullptr;
    const ConstantPtr& condition = tensors()[node.inputs[0]].constant;
    if (condition == nullptr || condition->is_float || condition->ints.size() != 1) return nullptr;
    const auto body = node.bodies.find(condition->ints[0] != 0 ? "then_branch" : "else_branch");
    const bool fits = body != node.bodies.end() && body->second->inputs.empty() &&
                      body->second->outputs.size() >= node.outputs.size();
    return fits ? body->second.get() : nullptr;  // otherwise the visit says what is wrong
  }

  bool ReadsMissing(const Node& node) const {
    const auto is_missing = [this](TensorId id) { return missing_.contains(id); };
    return absl::c_any_of(node.inputs, is_missing) || absl::c_any_of(node.captures, is_missing);
  }

  absl::Status Visit(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (!IsNeeded(node)) continue;
      if (interrupted_) ABSL_RETURN_IF_ERROR(interrupted_());
      if (const Body* branch = Branch(node); branch != nullptr) {
        ABSL_RETURN_IF_ERROR(VisitBranch(node, *branch));
        continue;
      }
      if (!ReadsMissing(node)) {
        const absl::Status status = TryNode(node);
        if (status.ok()) continue;
        if (!absl::IsUnimplemented(status)) return status;
        ABSL_RETURN_IF_ERROR(Postpone(node, status));
      }
      missing_.insert(node.outputs.begin(), node.outputs.end());
      missing_.erase(kNoTensor);
    }
    return absl::OkStatus();
  }

  // The nodes of the branch take the place of the If; each of them may have to wait.
  absl::Status VisitBranch(const Node& node, const Body& branch) {
    NeedBranch(branch);
    ABSL_RETURN_IF_ERROR(Visit(branch.nodes));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorId from = branch.outputs[i], to = node.outputs[i];
      if (to == kNoTensor) continue;
      if (from == kNoTensor || !tensors()[from].defined()) {
        missing_.insert(to);
      } else {
        tensors()[to] = Operand(tensors()[from]);
      }
    }
    return absl::OkStatus();
  }

  // Leaves nothing behind where the node cannot be built.
  absl::Status TryNode(const Node& node) {
    const size_t values = network_.values.size(), operations = network_.operations.size();
    std::vector<Operand> before;
    if (!node.bodies.empty()) before = tensors();
    const absl::Status status = BuildNode(node, graph_, &tensors(), &network_, repetition_);
    if (status.ok()) return status;
    network_.values.resize(values);
    network_.operations.resize(operations);
    if (!before.empty()) tensors() = std::move(before);
    for (TensorId id : node.outputs) {
      if (id != kNoTensor) tensors()[id] = Operand();
    }
    return status;
  }

  // Finds what the node, which could not be built, waits for.
  absl::Status Postpone(const Node& node, const absl::Status& why) {
    const OpRow& row = *FindOp(node);
    if (row.is_late) {
      cut_->late.push_back(&node);
      return absl::OkStatus();
    }
    bool waits = false;
    for (size_t i = 0; i < node.inputs.size() && i < 8; ++i) {
      if (!node.HasInput(i) || (row.deciding >> i & 1) == 0) continue;
      const Operand& operand = tensors()[node.inputs[i]];
      if (operand.value == kNoValue) continue;
      if (ElementCount(operand.dims).value_or(kLargestDeciding + 1) > kLargestDeciding) {
        return node.TooLarge("needs the elements of input ", i, ", which has dims ",
                             DimsToString(operand.dims), "; supported are ", kLargestDeciding,
                             " elements");
      }
      waits = true;
      if (!absl::c_linear_search(cut_->known, node.inputs[i]))
        cut_->known.push_back(node.inputs[i]);
    }
    if (!waits) problems_.Add(node, why);
    return absl::OkStatus();
  }

  // Keeps the tensors that nodes which are not built will read.
  void KeepForNodes(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (!IsNeeded(node)) continue;
      if (const Body* branch = Branch(node); branch != nullptr) {
        for (TensorId id : branch->outputs) Keep(id);
        KeepForNodes(branch->nodes);
        continue;
      }
      for (TensorId id : node.inputs) Keep(id);
      for (TensorId id : node.captures) Keep(id);
    }
  }

  void Keep(TensorId id) {
    if (id == kNoTensor || !kept_.insert(id).second) return;
    if (const auto given = given_.find(id); given != given_.end()) {
      cut_->kept.push_back(available_[given->second]);
      return;
    }
    const Operand& operand = tensors()[id];
    if (operand.sequence != nullptr) {
      kept_sequence_ =
          Unimplemented("the sequence '", graph_.tensor_names[id].substr(0, 200),
                        "' is read after sizes have been waited for; supported are sequences that "
                        "are read before");
    }
    if (operand.value == kNoValue) return;
    const DataType type = network_.values[operand.value].type;
    cut_->outputs.push_back({id, type, operand.is_integer, operand.dims});
    cut_->kept.push_back(cut_->outputs.back());
    network_.outputs.push_back(operand.value);
    network_.output_dims.push_back(operand.dims);
  }

  absl::Status KeepWhatIsRead() {
    for (TensorId id : cut_->graph.outputs) {
      const bool comes = id != kNoTensor && (tensors()[id].defined() || missing_.contains(id));
      if (!comes || (cut_->is_last() && !tensors()[id].defined()))
        return InvalidArgument("a graph has an output that is not computed");
      Keep(id);
    }
    KeepForNodes(*cut_->graph.nodes);
    return kept_sequence_;
  }

  // Drops inputs that are read only after this stage: they do not go through it.
  void DropUnreadInputs() {
    if (cut_->inputs.empty()) return;  // of a model, whose requests bring all of them
    std::vector<bool> read(network_.values.size(), false);
    for (const network::Operation& operation : network_.operations) {
      for (ValueId src : operation.srcs) read[src] = true;
    }
    for (ValueId output : network_.outputs) read[output] = true;
    std::vector<StagedTensor> inputs;
    std::vector<ValueId> values;
    for (size_t i = 0; i < network_.inputs.size(); ++i) {
      if (!read[network_.inputs[i]]) continue;
      inputs.push_back(cut_->inputs[i]);
      values.push_back(network_.inputs[i]);
    }
    cut_->inputs = std::move(inputs);
    network_.inputs = std::move(values);
  }

  const ModelGraph& graph_;
  std::shared_ptr<Cut> cut_;
  const std::vector<StagedTensor> available_;
  const Interrupted& interrupted_;
  const Repetition repetition_{.suffix = "", .interrupted = &interrupted_};
  absl::flat_hash_map<TensorId, size_t> given_;  // into available_
  std::vector<bool> needed_;                     // by TensorId
  absl::flat_hash_set<TensorId> missing_;        // depend on what is not computed in this stage
  absl::flat_hash_set<TensorId> kept_;
  absl::Status kept_sequence_;  // not OK: one would have to be kept
  Problems problems_;
  network::Network network_;
};

}  // namespace

int64_t Cut::HeldBytes() const {
  int64_t bytes = static_cast<int64_t>(tensors.size() * sizeof(Operand));
  for (const Operand& operand : tensors) {
    if (operand.constant != nullptr && !operand.is_of_model)
      bytes += operand.constant->count() * static_cast<int64_t>(sizeof(int64_t));
  }
  return bytes;
}

absl::StatusOr<Stage> BuildFirstStage(const ModelGraph& graph, std::vector<Operand> folded,
                                      absl::Span<const Dims> input_dims,
                                      const Interrupted& interrupted) {
  StageStart start{{&graph.nodes, {}, /*is_model=*/true}, std::move(folded), {}};
  for (const DeclaredTensor& output : graph.outputs) start.graph.outputs.push_back(output.id);
  StageBuilder builder(graph, std::move(start), interrupted);
  ABSL_RETURN_IF_ERROR(builder.AddModelInputs(input_dims));
  return builder.Build();
}

absl::StatusOr<Stage> BuildStage(const ModelGraph& graph, StageStart start,
                                 const Interrupted& interrupted) {
  return StageBuilder(graph, std::move(start), interrupted).Build();
}

StageStart StartAfter(const Cut& cut, absl::Span<const StagedTensor> computed,
                      absl::Span<const ConstantPtr> known) {
  StageStart start{cut.graph, cut.tensors, cut.kept};
  start.inputs.insert(start.inputs.end(), computed.begin(), computed.end());
  for (size_t i = 0; i < known.size(); ++i)
    start.tensors[cut.known[i]] = {known[i], kNoValue, known[i]->dims};
  return start;
}

std::vector<StagedTensor> ReadBy(const Node& node, const Cut& cut) {
  std::vector<StagedTensor> read;
  for (const StagedTensor& one : cut.kept) {
    if (absl::c_linear_search(node.inputs, one.id) || absl::c_linear_search(node.captures, one.id))
      read.push_back(one);
  }
  return read;
}

}  // namespace tilewire::reader
