// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/node_visit.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/findings.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::graph {
namespace {

// Constants that a visit computes count as a visit for so many elements.
constexpr int64_t kElementsOfVisit = 1024;

// An input is missing only when its producer has an output that this engine does not compute.
absl::Status CheckInputs(const Node& node, const ModelGraph& graph,
                         const std::vector<Operand>& tensors) {
  for (TensorId input : node.inputs) {
    if (input != kNoTensor && !tensors[input].defined()) {
      return node.Unimplemented(absl::StrCat("reads '", graph.tensor_names[input].substr(0, 200),
                                             "', an optional output that is not supported"));
    }
  }
  return absl::OkStatus();
}

// Only what handles sequences may read one: it has neither a value nor a constant.
absl::Status CheckSequences(const Node& node, const std::vector<Operand>& tensors) {
  if (FindOp(node)->takes_sequences) return absl::OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.HasInput(i) && tensors[node.inputs[i]].sequence != nullptr)
      return node.Invalid(absl::StrCat("input ", i, " is a sequence of tensors"));
  }
  return absl::OkStatus();
}

bool ReadsAny(const Node& node, const absl::flat_hash_set<TensorId>& of) {
  if (of.empty()) return false;
  for (const std::vector<TensorId>* read : {&node.inputs, &node.captures}) {
    for (TensorId input : *read) {
      if (of.contains(input)) return true;
    }
  }
  return false;
}

// Elements of constants that the operator reads are in memory meanwhile.
absl::Status LoadConstants(const Node& node, const NodeContext& context,
                           std::vector<Operand>* tensors) {
  if (FindOp(node)->folds != Folds::kInMemory || !context.AllConstant()) return absl::OkStatus();
  for (TensorId input : node.inputs) {
    if (input == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN((*tensors)[input].constant, InMemory((*tensors)[input].constant));
  }
  return absl::OkStatus();
}

// Elements that were computed for this network alone, or came with a request, make weights its own.
void MarkOwnWeights(const Node& node, const std::vector<Operand>& tensors, size_t first_operation,
                    Network* network) {
  const bool reads_own = absl::c_any_of(node.inputs, [&](TensorId id) {
    return id != kNoTensor && tensors[id].constant != nullptr && !tensors[id].is_of_model;
  });
  for (size_t i = first_operation; reads_own && i < network->operations.size(); ++i) {
    OperationParams& params = network->operations[i].params;
    if (auto* convolution = std::get_if<Convolution>(&params)) convolution->weights.own = true;
    if (auto* deconvolution = std::get_if<Deconvolution>(&params))
      deconvolution->weights.own = true;
    if (auto* product = std::get_if<InnerProduct>(&params)) product->weights.own = true;
    if (auto* rnn = std::get_if<Rnn>(&params)) {
      for (auto& [role, weights] : rnn->known) weights.own = true;
    }
  }
}

}  // namespace

absl::Status BuildNode(const Node& node, const ModelGraph& graph, std::vector<Operand>* tensors,
                       Network* network, const Repetition& repetition) {
  ABSL_RETURN_IF_ERROR(CheckInputs(node, graph, *tensors));
  ABSL_RETURN_IF_ERROR(CheckSequences(node, *tensors));
  if (node.HasInput(0)) ABSL_RETURN_IF_ERROR(CheckReals(node, graph.element_types[node.inputs[0]]));
  NodeContext context(node, graph, tensors, network, repetition);
  ABSL_RETURN_IF_ERROR(LoadConstants(node, context, tensors));
  const OpRow& row = *FindOp(node);
  const size_t first_operation = network->operations.size();
  ABSL_RETURN_IF_ERROR(row.build(context));
  MarkOwnWeights(node, *tensors, first_operation, network);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoTensor)
      (*tensors)[node.outputs[i]].is_integer =
          IsIntegerOrBool(graph.element_types[node.outputs[i]]);
  }
  return absl::OkStatus();
}

absl::Status LoopsTooLong(const Node& node) {
  return node.Unimplemented(absl::StrCat("loops over more than ", kMostVisits,
                                         " nodes, each counted as often as it runs"));
}

absl::Status VisitNodes(const std::vector<Node>& nodes, const ModelGraph& graph,
                        std::vector<Operand>* tensors, Network* network,
                        const Repetition& repetition) {
  Findings findings;
  absl::flat_hash_set<TensorId> refused;  // not computed, because a node is refused
  for (const Node& node : nodes) {
    if ((*tensors)[node.FirstOutput()].defined()) continue;  // folded
    if (!ReadsAny(node, refused)) {
      if (repetition.interrupted != nullptr && *repetition.interrupted)
        ABSL_RETURN_IF_ERROR((*repetition.interrupted)());
      const absl::Status status = BuildNode(node, graph, tensors, network, repetition);
      if (status.ok()) continue;
      if (!absl::IsUnimplemented(status) && findings.empty()) return status;
      findings.Add(node, status);
    }
    refused.insert(node.outputs.begin(), node.outputs.end());
    refused.erase(kNoTensor);
  }
  return findings.AsStatus();
}

absl::StatusOr<std::vector<Operand>> NodeContext::Visit(const Body& body,
                                                        const std::vector<Operand>& inputs,
                                                        absl::string_view suffix) {
  *repetition_.visits += static_cast<int64_t>(body.nodes.size()) + 1;
  if (*repetition_.visits > kMostVisits) return LoopsTooLong(node);
  for (size_t i = 0; i < inputs.size(); ++i) tensors_[body.inputs[i]] = inputs[i];
  std::vector<TensorId> computed;
  for (const Node& one : body.nodes) {
    if (tensors_[one.FirstOutput()].defined()) continue;
    computed.insert(computed.end(), one.outputs.begin(), one.outputs.end());
  }
  const Repetition repetition = {absl::StrCat(repetition_.suffix, suffix), repetition_.visits,
                                 repetition_.interrupted};
  ABSL_RETURN_IF_ERROR(VisitNodes(body.nodes, graph_, &tensors_, network_, repetition));
  std::vector<Operand> outputs;
  for (TensorId id : body.outputs) {
    if (id == kNoTensor || !tensors_[id].defined())
      return node.Invalid("a graph in it has an output that is not computed");
    outputs.push_back(tensors_[id]);
  }
  for (TensorId id : computed) {
    if (id == kNoTensor) continue;
    if (tensors_[id].constant != nullptr)
      *repetition_.visits += tensors_[id].constant->count() / kElementsOfVisit;
    tensors_[id] = Operand();
  }
  return outputs;
}

}  // namespace tilewire::graph
