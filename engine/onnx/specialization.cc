// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/specialization.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/network_check.h"
#include "engine/onnx/empty_tensors.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::graph {
namespace {

// Limits the bytes of one tensor: far above any memory, far below an overflow in later arithmetic.
constexpr int64_t kLargestTensorBytes = int64_t{1} << 46;

// Dimensions of 0 count as 1, so that the product of any of them fits too.
bool FitsInMemory(Dims dims) {
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  const std::optional<int64_t> count = ElementCount(dims);
  return count && *count <= kLargestTensorBytes / static_cast<int64_t>(sizeof(float));
}

std::vector<Operand> Initializers(const ModelGraph& graph) {
  std::vector<Operand> tensors(graph.tensor_names.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (graph.initializers[i] == nullptr) continue;
    tensors[i].constant = graph.initializers[i];
    tensors[i].dims = graph.initializers[i]->dims;
  }
  return tensors;
}

// Converts a value of 8-bit integers to the same numbers in f32; returns an f32 value as it is.
ValueId InFloats(ValueId value, Network* network) {
  if (network->values[value].type == DataType::kF32) return value;
  const ValueId wide = static_cast<ValueId>(network->values.size());
  Value copy = network->values[value];
  copy.type = DataType::kF32;
  network->operations.push_back({copy.name, Dequantize{}, {value}, wide});
  network->values.push_back(std::move(copy));
  return wide;
}

// Whether the operation only moves or compares elements, so that integers keep their type.
bool KeepsType(const OperationParams& params) {
  if (const auto* pooling = std::get_if<Pooling>(&params))
    return pooling->algorithm == Pooling::Algorithm::kMax;
  return std::holds_alternative<Reshape>(params) || std::holds_alternative<Transpose>(params) ||
         std::holds_alternative<Select>(params) || std::holds_alternative<Shuffle>(params) ||
         std::holds_alternative<Concat>(params) || std::holds_alternative<Gather>(params);
}

// A value of `type` for the constant, which has that type in the model.
ValueId AddLiteral(ConstantPtr constant, std::string name, DataType type, Network* network) {
  const ValueId value = static_cast<ValueId>(network->values.size());
  network->values.push_back({name, type, constant->dims});
  network->operations.push_back({std::move(name), Literal{std::move(constant)}, {}, value});
  return value;
}

// The same numbers in another type.
ValueId AddConvert(ValueId src, DataType type, Network* network) {
  const ValueId value = static_cast<ValueId>(network->values.size());
  Value converted = network->values[src];
  converted.type = type;
  network->operations.push_back({converted.name, Convert{}, {src}, value});
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
                                    absl::string_view name, Network* network) {
  const bool is_known = operand.constant != nullptr;
  const DataType literal = IsComputedInF32(output.type) ? DataType::kF32 : output.type;
  bool fits = false;
  if (is_known) {
    fits = operand.constant->is_float != IsIntegerOrBool(output.type);
  } else if (operand.value != kNoValue) {
    fits = MayGoOutAs(network->values[operand.value].type, operand.is_integer, output.type);
  }
  if (!operand.defined() || !fits) {
    return absl::UnimplementedError(
        absl::StrCat("output '", name.substr(0, 200), "' is declared ", DataTypeName(output.type),
                     operand.defined() ? ", but has another type" : ", but is not supported"));
  }
  const ValueId value =
      is_known ? AddLiteral(operand.constant, std::string(name), literal, network) : operand.value;
  if (output.type == DataType::kF32) return InFloats(value, network);
  const DataType held = network->values[value].type;
  return held == output.type ? value : AddConvert(value, output.type, network);
}

}  // namespace

absl::Status SetOutputs(const ModelGraph& graph, const std::vector<Operand>& tensors,
                        Network* network) {
  for (const DeclaredTensor& output : graph.outputs) {
    const Operand& operand = tensors[output.id];
    ABSL_ASSIGN_OR_RETURN(network->outputs.emplace_back(),
                          OutputValue(output, operand, graph.tensor_names[output.id], network));
    network->output_dims.push_back(operand.dims);
  }
  for (Value& value : network->values) {
    if (value.dims.empty()) value.dims = {1};
  }
  return absl::OkStatus();
}

bool NodeContext::AllConstant() const {
  for (int i = 0; i < input_count(); ++i) {
    if (Has(i) && input(i).constant == nullptr) return false;
  }
  return true;
}

bool NodeContext::IsReadOnlyBy(absl::string_view op) const {
  const TensorId id = node.outputs[0];
  const auto is_output = [id](const DeclaredTensor& output) { return output.id == id; };
  if (absl::c_any_of(graph_.outputs, is_output)) return false;
  bool is_read = false;
  for (const Node& reader : graph_.nodes) {
    if (absl::c_linear_search(reader.captures, id)) return false;
    if (!absl::c_linear_search(reader.inputs, id)) continue;
    if (reader.op() != op) return false;
    is_read = true;
  }
  return is_read;
}

absl::StatusOr<ConstantPtr> NodeContext::Floats(int i) const {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, FloatsInPlace(i));
  return InMemory(constant);
}

absl::StatusOr<ConstantPtr> NodeContext::FloatsInPlace(int i) const {
  const ConstantPtr& constant = input(i).constant;
  if (constant == nullptr)
    return node.Unimplemented(
        absl::StrCat("input ", i, " is computed at run time; it must be known at load"));
  if (!constant->is_float) return node.Invalid(absl::StrCat("input ", i, " is not floating-point"));
  return constant;
}

absl::StatusOr<ConstantPtr> NodeContext::Ints(int i) const {
  const ConstantPtr& constant = input(i).constant;
  if (constant == nullptr)
    return node.Unimplemented(
        absl::StrCat("input ", i, " is computed at run time; it must be known at load"));
  if (constant->is_float) return node.Invalid(absl::StrCat("input ", i, " is not of integers"));
  return InMemory(constant);
}

namespace {

bool IsReal(DataType type) { return type == DataType::kF32 || type == DataType::kF64; }

}  // namespace

absl::StatusOr<ValueId> NodeContext::AsValue(const Operand& operand) {
  const bool is_float =
      operand.value != kNoValue ? IsReal(value(operand.value).type) : operand.constant->is_float;
  if (!is_float)
    return node.Unimplemented(absl::StrCat(
        "takes ", operand.constant != nullptr ? "integers" : DataTypeName(TypeOf(operand)),
        " here; supported are f32, f64, and integers of more than 8 bits that are computed from "
        "f32"));
  return Numbers(operand);
}

absl::StatusOr<ValueId> NodeContext::Numbers(const Operand& operand) {
  if (operand.value != kNoValue) {
    const DataType type = value(operand.value).type;
    if (type == DataType::kF32) return operand.value;
    if (type == DataType::kF64) return InType(operand, DataType::kF32);
    if (!IsByte(type)) {
      return node.Unimplemented(absl::StrCat("takes ", DataTypeName(type),
                                             " here, which f32 does not hold exactly; supported "
                                             "are f32, f64, u8 and s8"));
    }
    const std::string suffix = absl::StrCat("/", value(operand.value).name);
    return Emit(Dequantize{}, {operand.value}, operand.dims, suffix);
  }
  ConstantPtr numbers = operand.constant;
  const std::string suffix = absl::StrCat("/", numbers->name);
  if (!numbers->is_float) {
    ABSL_ASSIGN_OR_RETURN(numbers, InMemory(numbers));
    numbers = MakeFloats(numbers->name, numbers->dims,
                         std::vector<float>(numbers->ints.begin(), numbers->ints.end()));
  }
  const Dims dims = numbers->dims;
  return Emit(Literal{std::move(numbers)}, {}, dims, suffix);
}

namespace {

// Whether every integer is in the range of `type`; those of u64 are held in 63 bits.
bool FitIn(absl::Span<const int64_t> integers, DataType type) {
  const int64_t bits = 8 * SizeOf(type);
  const bool is_signed = type == DataType::kS8 || type == DataType::kS16 ||
                         type == DataType::kS32 || type == DataType::kS64;
  int64_t low = 0, high = std::numeric_limits<int64_t>::max();
  if (is_signed)
    low = bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  if (bits < 64) high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  for (int64_t integer : integers) {
    if (integer < low || integer > high) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<ValueId> NodeContext::InType(const Operand& operand, DataType type) {
  if (operand.value != kNoValue) {
    const Value& src = value(operand.value);
    if (src.type == type) return operand.value;
    const std::string suffix = absl::StrCat("/", src.name, "/", DataTypeName(type));
    return Emit(Convert{}, {operand.value}, operand.dims, suffix, type);
  }
  if (type == DataType::kF32) return Numbers(operand);
  ABSL_ASSIGN_OR_RETURN(ConstantPtr constant, InMemory(operand.constant));
  if (IsIntegerType(type) && (constant->is_float || !FitIn(constant->ints, type))) {
    return node.Invalid(absl::StrCat("'", constant->name.substr(0, 200), "' has elements that ",
                                     DataTypeName(type), " does not hold"));
  }
  const Dims dims = constant->dims;
  const std::string suffix = absl::StrCat("/", constant->name, "/", DataTypeName(type));
  return Emit(Literal{std::move(constant)}, {}, dims, suffix, type);
}

absl::StatusOr<ValueId> NodeContext::OfAnyType(const Operand& operand) {
  return operand.value != kNoValue ? operand.value : Numbers(operand);
}

absl::StatusOr<ValueId> NodeContext::Emit(OperationParams params, std::vector<ValueId> srcs,
                                          Dims dims, absl::string_view suffix, DataType type) {
  const bool may_be_empty = MayDropAll(params) || absl::c_any_of(srcs, [this](ValueId src) {
                              return IsEmpty(value(src).dims);
                            });
  for (int64_t dim : dims) {
    if (dim < (may_be_empty ? 0 : 1))
      return node.Invalid(absl::StrCat("the result would have dims ", DimsToString(dims)));
  }
  if (dims.size() > kMaxRank)
    return node.Invalid(absl::StrCat("the result would have rank ", dims.size()));
  if (!FitsInMemory(dims))
    return node.Invalid(absl::StrCat("the result is too large: ", DimsToString(dims)));
  const ValueId dst = static_cast<ValueId>(network_->values.size());
  if (KeepsType(params)) type = value(srcs[0]).type;
  network_->values.push_back({absl::StrCat(output_name(), suffix), type, std::move(dims)});
  network_->operations.push_back({node.name(), std::move(params), std::move(srcs), dst});
  return dst;
}

absl::StatusOr<ValueId> NodeContext::EmitReshape(ValueId src, Dims dims, absl::string_view suffix) {
  if (value(src).dims == dims) return src;
  return Emit(Reshape{}, {src}, std::move(dims), suffix);
}

absl::Status NodeContext::SetOutput(const Operand& operand, int i) {
  if (operand.value >= first_own_value_) network_->values[operand.value].name = output_name(i);
  tensors_[node.outputs[i]] = Operand(operand);
  return absl::OkStatus();
}

absl::Status NodeContext::SetOutput(ValueId value) {
  return SetOutput(Operand{nullptr, value, this->value(value).dims});
}

absl::Status NodeContext::SetOutput(ConstantPtr constant) {
  Dims dims = constant->dims;
  return SetOutput(Operand{std::move(constant), kNoValue, std::move(dims)});
}

absl::Status NodeContext::Finish(OperationParams params, std::vector<ValueId> srcs, Dims dims,
                                 DataType type) {
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        Emit(std::move(params), std::move(srcs), std::move(dims), "", type));
  return SetOutput(dst);
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
                       std::vector<Operand>* tensors) {
  for (const Node& node : nodes) {
    for (const auto& [name, body] : node.bodies)
      FoldNodes(body->nodes, graph, tensors).IgnoreError();
    Network scratch;
    NodeContext context(node, graph, tensors, &scratch);
    bool ready = FindOp(node)->folds != Folds::kNever;
    for (TensorId input : node.inputs)
      ready = ready && (input == kNoTensor || (*tensors)[input].constant != nullptr);
    if (!ready) continue;
    // What is not supported is refused by BuildNetwork(), with the rest that is not.
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
    return absl::InvalidArgumentError(
        absl::StrCat("dims of ", dims.size(), " inputs for a model of ", graph.inputs.size()));
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const TensorId id = graph.inputs[i].id;
    if (absl::c_any_of(dims[i], [](int64_t dim) { return dim < 0; })) {
      return absl::InvalidArgumentError(absl::StrCat("input '", graph.tensor_names[id],
                                                     "' has dims ", DimsToString(dims[i]),
                                                     "; sizes are 0 or more"));
    }
    if (!FitsInMemory(dims[i])) {
      return absl::InvalidArgumentError(absl::StrCat("input '", graph.tensor_names[id],
                                                     "' is too large: ", DimsToString(dims[i])));
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
    operand.value = AddConvert(operand.value, DataType::kF32, network);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Operand>> FoldConstants(const ModelGraph& graph) {
  std::vector<Operand> tensors = Initializers(graph);
  ABSL_RETURN_IF_ERROR(FoldNodes(graph.nodes, graph, &tensors));
  for (Operand& operand : tensors) operand.is_of_model = operand.defined();
  return tensors;
}

absl::StatusOr<Network> BuildNetwork(const ModelGraph& graph, std::vector<Operand> folded,
                                     absl::Span<const Dims> input_dims,
                                     absl::Span<const ConstantPtr> known,
                                     const std::function<absl::Status()>& interrupted) {
  Network network;
  std::vector<Operand> tensors = std::move(folded);
  ABSL_RETURN_IF_ERROR(AddInputs(graph, input_dims, known, &tensors, &network));
  ABSL_RETURN_IF_ERROR(VisitNodes(graph.nodes, graph, &tensors, &network,
                                  {.suffix = "", .interrupted = &interrupted}));
  ABSL_RETURN_IF_ERROR(SetOutputs(graph, tensors, &network));
  ABSL_RETURN_IF_ERROR(ElideEmpty(&network));
  ABSL_RETURN_IF_ERROR(CheckNetwork(network));
  return network;
}

}  // namespace tilewire::graph
