// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/specialization.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/network/network_check.h"
#include "engine/onnx/empty_tensors.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::reader {

using network::Network;
using network::Value;
namespace {

bool IsIn(const std::vector<bool>& set, TensorId id) {
  return static_cast<size_t>(id) < set.size() && set[id];
}

std::vector<Operand> Initializers(const ModelGraph& graph, const std::vector<bool>& except) {
  std::vector<Operand> tensors(graph.tensor_names.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (graph.initializers[i] == nullptr || IsIn(except, static_cast<TensorId>(i))) continue;
    tensors[i].constant = graph.initializers[i];
    tensors[i].dims = graph.initializers[i]->dims;
  }
  return tensors;
}

// A value of `type` for the constant, which has that type in the model.
ValueId AddLiteral(ConstantPtr constant, std::string name, DataType type, Network* network) {
  const ValueId value = static_cast<ValueId>(network->values.size());
  network->values.push_back({name, type, constant->dims});
  network->operations.push_back(
      {std::move(name), network::Literal{std::move(constant)}, {}, value});
  return value;
}

// The same numbers in another type, by a Convert or a Dequantize.
ValueId AddInType(ValueId src, DataType type, network::OperationParams by, Network* network) {
  const ValueId value = static_cast<ValueId>(network->values.size());
  Value converted = network->values[src];
  converted.type = type;
  network->operations.push_back({converted.name, std::move(by), {src}, value});
  network->values.push_back(std::move(converted));
  return value;
}

// Whether numbers that are held in a type may go out as the declared one: they are held in it, or
// in f32 for it. A model whose declaration is wrong would get other numbers than it computes.
bool MayGoOutAs(DataType held, bool is_integer, DataType declared) {
  if (held == declared) return true;
  if (declared == DataType::kF32) return held == DataType::kF32 || IsByte(held);
  return held == DataType::kF32 && is_integer == IsIntegerOrBool(declared);
}

absl::StatusOr<ValueId> OutputValue(const DeclaredTensor& output, const Operand& operand,
                                    ElementType type, absl::string_view name, Network* network) {
  const bool is_known = operand.constant != nullptr;
  const DataType literal = IsComputedInF32(output.type) ? DataType::kF32 : output.type;
  bool fits = false;
  if (is_known) {
    fits = operand.constant->is_float != IsIntegerOrBool(output.type);
  } else if (operand.value != kNoValue) {
    fits = MayGoOutAs(network->values[operand.value].type, operand.is_integer, output.type);
  }
  if (!operand.defined() || !fits || type.is_small()) {
    return Unimplemented("output '", name.substr(0, 200), "' is declared ",
                         DataTypeName(output.type),
                         operand.defined() ? ", but has another type" : ", but is not supported");
  }
  const ValueId value =
      is_known ? AddLiteral(operand.constant, std::string(name), literal, network) : operand.value;
  if (network->values[value].type == output.type) return value;
  if (output.type == DataType::kF32)
    return AddInType(value, output.type, network::Dequantize{}, network);
  return AddInType(value, output.type, network::Convert{}, network);
}

}  // namespace

absl::Status SetOutputs(const ModelGraph& graph, const std::vector<Operand>& tensors,
                        Network* network) {
  for (const DeclaredTensor& output : graph.outputs) {
    const Operand& operand = tensors[output.id];
    ABSL_ASSIGN_OR_RETURN(network->outputs.emplace_back(),
                          OutputValue(output, operand, graph.element_types[output.id],
                                      graph.tensor_names[output.id], network));
    network->output_dims.push_back(operand.dims);
  }
  for (Value& value : network->values) {
    if (value.dims.empty()) value.dims = {1};
  }
  return absl::OkStatus();
}

namespace {

// A constant that its file still holds gives up its copy in memory.
void ReleaseStored(Operand* operand) {
  if (operand->constant == nullptr || operand->constant->stored == nullptr) return;
  auto released = std::make_shared<Constant>(*operand->constant);
  released->floats = {};
  released->owner = nullptr;
  released->ints.clear();
  operand->constant = std::move(released);
}

// Operators that fold read the elements of their inputs, which are in memory meanwhile, unless the
// operator works on constants in the file.
absl::Status Fold(const Node& node, NodeContext* context, std::vector<Operand>* tensors) {
  for (TensorId input : node.inputs) {
    if (input == kNoTensor || FindOp(node)->folds == Folds::kInPlace) continue;
    ABSL_ASSIGN_OR_RETURN((*tensors)[input].constant, InMemory((*tensors)[input].constant));
  }
  ABSL_RETURN_IF_ERROR(FindOp(node)->build(*context));
  for (TensorId id : node.inputs) {
    if (id != kNoTensor) ReleaseStored(&(*tensors)[id]);
  }
  for (TensorId id : node.outputs) {
    if (id == kNoTensor) continue;
    ReleaseStored(&(*tensors)[id]);
    // Computed at run time after all.
    if ((*tensors)[id].value != kNoValue) (*tensors)[id] = Operand();
  }
  return absl::OkStatus();
}

// Also in graphs of attributes, where errors wait until it is known whether the graph is visited.
absl::Status FoldNodes(const std::vector<Node>& nodes, const ModelGraph& graph,
                       const std::vector<bool>& except, std::vector<Operand>* tensors) {
  for (const Node& node : nodes) {
    if (IsIn(except, node.FirstOutput())) continue;
    for (const auto& [name, body] : node.bodies)
      FoldNodes(body->nodes, graph, except, tensors).IgnoreError();
    Network scratch;
    NodeContext context(node, graph, tensors, &scratch, &VisitNodes);
    bool ready = FindOp(node)->folds != Folds::kNever;
    for (TensorId input : node.inputs)
      ready = ready && (input == kNoTensor || (*tensors)[input].constant != nullptr);
    if (!ready) continue;
    ReportProgress("folding node", node.name());
    // Unsupported nodes are refused by BuildNetwork(), all at once.
    const absl::Status status = Fold(node, &context, tensors);
    if (!status.ok() && !absl::IsUnimplemented(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddInputs(const ModelGraph& graph, absl::Span<const Dims> dims,
                       absl::Span<const ConstantPtr> known, std::vector<Operand>* tensors,
                       Network* network) {
  if (dims.size() != graph.inputs.size()) {
    return InvalidArgument("dims of ", dims.size(), " inputs for a model of ", graph.inputs.size());
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const TensorId id = graph.inputs[i].id;
    if (absl::c_any_of(dims[i], [](int64_t dim) { return dim < 0; })) {
      return InvalidArgument("input '", graph.tensor_names[id], "' has dims ",
                             DimsToString(dims[i]), "; sizes are 0 or more");
    }
    if (!FitsInMemory(dims[i])) {
      return InvalidArgument("input '", graph.tensor_names[id],
                             "' is too large: ", DimsToString(dims[i]));
    }
    const DataType type = graph.inputs[i].type;
    (*tensors)[id] = {nullptr, static_cast<ValueId>(i), dims[i], IsIntegerOrBool(type)};
    network->values.push_back({graph.tensor_names[id], type, dims[i]});
    network->inputs.push_back(static_cast<ValueId>(i));
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const DeclaredTensor& input = graph.inputs[i];
    Operand& operand = (*tensors)[input.id];
    if (i < known.size() && known[i] != nullptr) {
      operand = {known[i], kNoValue, dims[i]};
      continue;
    }
    const bool is_narrow = input.type == DataType::kF16 || input.type == DataType::kBf16;
    if (!is_narrow && input.type != DataType::kBool) continue;
    operand.value = AddInType(operand.value, DataType::kF32, network::Convert{}, network);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Operand>> FoldConstants(const ModelGraph& graph,
                                                   const std::vector<bool>& except) {
  std::vector<Operand> tensors = Initializers(graph, except);
  ABSL_RETURN_IF_ERROR(FoldNodes(graph.nodes, graph, except, &tensors));
  for (Operand& operand : tensors) operand.is_of_model = operand.defined();
  return tensors;
}

namespace {

// From the inputs on, which the network has.
absl::StatusOr<Network> Finished(const ModelGraph& graph, std::vector<Operand> tensors,
                                 const Repetition& repetition, Network network) {
  ABSL_RETURN_IF_ERROR(VisitNodes(graph.nodes, graph, &tensors, &network, repetition));
  ABSL_RETURN_IF_ERROR(SetOutputs(graph, tensors, &network));
  ABSL_RETURN_IF_ERROR(ElideEmpty(&network));
  ABSL_RETURN_IF_ERROR(network::CheckNetwork(network));
  return network;
}

}  // namespace

absl::StatusOr<Network> BuildNetwork(const ModelGraph& graph, std::vector<Operand> folded,
                                     absl::Span<const Dims> input_dims,
                                     absl::Span<const ConstantPtr> known,
                                     const std::function<absl::Status()>& interrupted) {
  Network network;
  ABSL_RETURN_IF_ERROR(AddInputs(graph, input_dims, known, &folded, &network));
  return Finished(graph, std::move(folded), {.suffix = "", .interrupted = &interrupted},
                  std::move(network));
}

absl::StatusOr<Network> BuildForTraining(const ModelGraph& graph,
                                         const std::vector<Operand>& folded,
                                         const std::vector<bool>& learning,
                                         absl::Span<const Dims> input_dims,
                                         const TrainingPurpose& purpose) {
  Network network;
  ABSL_ASSIGN_OR_RETURN(std::vector<Operand> tensors, FoldConstants(graph, learning));
  ABSL_RETURN_IF_ERROR(AddInputs(graph, input_dims, {}, &tensors, &network));
  for (size_t id = 0; id < tensors.size(); ++id) {
    if (!IsIn(learning, static_cast<TensorId>(id))) continue;
    const ConstantPtr& initial = folded[id].constant;
    tensors[id] = {nullptr, AddParameter(initial, /*learns=*/true, &network), initial->dims};
  }
  return Finished(graph, std::move(tensors), {.suffix = "", .training = &purpose},
                  std::move(network));
}

}  // namespace tilewire::reader
