// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/node_visit.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/problems.h"

namespace tilewire::reader {

using network::Network;
namespace {

// An input is missing only when its producer has an output that this engine does not compute.
absl::Status CheckInputs(const Node& node, const ModelGraph& graph,
                         const std::vector<Operand>& tensors) {
  for (TensorId input : node.inputs) {
    if (input != kNoTensor && !tensors[input].defined()) {
      return node.Unimplemented("reads '", graph.tensor_names[input].substr(0, 200),
                                "', an optional output that is not supported");
    }
  }
  return absl::OkStatus();
}

// Only what handles sequences may read one: it has neither a value nor a constant.
absl::Status CheckSequences(const Node& node, const std::vector<Operand>& tensors) {
  if (FindOp(node)->takes_sequences) return absl::OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.HasInput(i) && tensors[node.inputs[i]].sequence != nullptr)
      return node.Invalid("input ", i, " is a sequence of tensors");
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
    network::OperationParams& params = network->operations[i].params;
    if (auto* convolution = std::get_if<network::Convolution>(&params))
      convolution->weights.own = true;
    if (auto* deconvolution = std::get_if<network::Deconvolution>(&params))
      deconvolution->weights.own = true;
    if (auto* product = std::get_if<network::InnerProduct>(&params)) product->weights.own = true;
    if (auto* rnn = std::get_if<network::Rnn>(&params)) {
      for (auto& [role, weights] : rnn->known) weights.own = true;
    }
  }
}

}  // namespace

absl::Status BuildNode(const Node& node, const ModelGraph& graph, std::vector<Operand>* tensors,
                       Network* network, const Repetition& repetition) {
  ReportProgress("reading node", node.name());
  ABSL_RETURN_IF_ERROR(CheckInputs(node, graph, *tensors));
  ABSL_RETURN_IF_ERROR(CheckSequences(node, *tensors));
  if (node.HasInput(0)) ABSL_RETURN_IF_ERROR(CheckReals(node, graph.element_types[node.inputs[0]]));
  ABSL_RETURN_IF_ERROR(CheckSmall(node, graph.element_types));
  NodeContext context(node, graph, tensors, network, &VisitNodes, repetition);
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

absl::Status VisitNodes(const std::vector<Node>& nodes, const ModelGraph& graph,
                        std::vector<Operand>* tensors, Network* network,
                        const Repetition& repetition) {
  Problems problems;
  absl::flat_hash_set<TensorId> refused;  // not computed, because a node is refused
  for (const Node& node : nodes) {
    if ((*tensors)[node.FirstOutput()].defined()) continue;  // folded
    if (!ReadsAny(node, refused)) {
      if (repetition.interrupted != nullptr && *repetition.interrupted)
        ABSL_RETURN_IF_ERROR((*repetition.interrupted)());
      const absl::Status status = BuildNode(node, graph, tensors, network, repetition);
      if (status.ok()) continue;
      if (!absl::IsUnimplemented(status) && problems.empty()) return status;
      problems.Add(node, status);
    }
    refused.insert(node.outputs.begin(), node.outputs.end());
    refused.erase(kNoTensor);
  }
  return problems.AsStatus();
}

}  // namespace tilewire::reader
