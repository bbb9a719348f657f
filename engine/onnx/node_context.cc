// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/node_context.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/network/training/differentiate.h"
#include "engine/onnx/empty_tensors.h"

namespace tilewire::reader {

using network::OperationParams;
namespace {

// Limits the bytes of one tensor: far above any memory, far below an overflow in later arithmetic.
constexpr int64_t kLargestTensorBytes = int64_t{1} << 46;

// Whether the operation only moves or compares elements, so that integers keep their type.
bool KeepsType(const OperationParams& params) {
  if (const auto* pooling = std::get_if<network::Pooling>(&params))
    return pooling->algorithm == network::Pooling::Algorithm::kMax;
  return std::holds_alternative<network::Reshape>(params) ||
         std::holds_alternative<network::Transpose>(params) ||
         std::holds_alternative<network::Select>(params) ||
         std::holds_alternative<network::Shuffle>(params) ||
         std::holds_alternative<network::Concat>(params) ||
         std::holds_alternative<network::Gather>(params);
}

// Constants that a visit computes count as a visit for so many elements.
constexpr int64_t kElementsOfVisit = 1024;

}  // namespace

bool FitsInMemory(Dims dims) {
  for (int64_t& dim : dims) dim = std::max<int64_t>(dim, 1);
  const std::optional<int64_t> count = ElementCount(dims);
  return count && *count <= kLargestTensorBytes / static_cast<int64_t>(sizeof(float));
}

ValueId AddParameter(const ConstantPtr& constant, bool learns, network::Network* network) {
  const auto value = static_cast<ValueId>(network->values.size());
  network->values.push_back({constant->name, DataType::kF32, constant->dims});
  network->parameters.push_back({value, kNoValue, constant->name, constant, learns});
  return value;
}

absl::Status LoopsTooLong(const Node& node) {
  return node.Unimplemented("loops over more than ", kMostVisits,
                            " nodes, each counted as often as it runs");
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
    return node.Unimplemented("input ", i, " is computed at run time; it must be known at load");
  if (!constant->is_float) return node.Invalid("input ", i, " is not floating-point");
  return constant;
}

absl::StatusOr<ConstantPtr> NodeContext::Ints(int i) const {
  const ConstantPtr& constant = input(i).constant;
  if (constant == nullptr)
    return node.Unimplemented("input ", i, " is computed at run time; it must be known at load");
  if (constant->is_float) return node.Invalid("input ", i, " is not of integers");
  return InMemory(constant);
}

namespace {

bool IsReal(DataType type) { return type == DataType::kF32 || type == DataType::kF64; }

}  // namespace

absl::StatusOr<ValueId> NodeContext::AsValue(const Operand& operand) {
  const bool is_float =
      operand.value != kNoValue ? IsReal(value(operand.value).type) : operand.constant->is_float;
  if (!is_float)
    return node.Unimplemented(
        "takes ", operand.constant != nullptr ? "integers" : DataTypeName(TypeOf(operand)),
        " here; supported are f32, f64, and integers of more than 8 bits that are computed from "
        "f32");
  return Numbers(operand);
}

absl::StatusOr<ValueId> NodeContext::Numbers(const Operand& operand) {
  if (operand.value != kNoValue) {
    const DataType type = value(operand.value).type;
    if (type == DataType::kF32) return operand.value;
    if (type == DataType::kF64) return InType(operand, DataType::kF32);
    if (!IsByte(type)) {
      return node.Unimplemented("takes ", DataTypeName(type),
                                " here, which f32 does not hold exactly; supported "
                                "are f32, f64, u8 and s8");
    }
    const std::string suffix = absl::StrCat("/", value(operand.value).name);
    return Emit(network::Dequantize{}, {operand.value}, operand.dims, suffix);
  }
  ConstantPtr numbers = operand.constant;
  const std::string suffix = absl::StrCat("/", numbers->name);
  if (!numbers->is_float) {
    ABSL_ASSIGN_OR_RETURN(numbers, InMemory(numbers));
    numbers = MakeFloats(numbers->name, numbers->dims,
                         std::vector<float>(numbers->ints.begin(), numbers->ints.end()));
  }
  const Dims dims = numbers->dims;
  return Emit(network::Literal{std::move(numbers)}, {}, dims, suffix);
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
    const network::Value& src = value(operand.value);
    if (src.type == type) return operand.value;
    const std::string suffix = absl::StrCat("/", src.name, "/", DataTypeName(type));
    return Emit(network::Convert{}, {operand.value}, operand.dims, suffix, type);
  }
  if (type == DataType::kF32) return Numbers(operand);
  ABSL_ASSIGN_OR_RETURN(ConstantPtr constant, InMemory(operand.constant));
  if (IsIntegerType(type) && (constant->is_float || !FitIn(constant->ints, type))) {
    return node.Invalid("'", constant->name.substr(0, 200), "' has elements that ",
                        DataTypeName(type), " does not hold");
  }
  const Dims dims = constant->dims;
  const std::string suffix = absl::StrCat("/", constant->name, "/", DataTypeName(type));
  return Emit(network::Literal{std::move(constant)}, {}, dims, suffix, type);
}

absl::StatusOr<ValueId> NodeContext::OfAnyType(const Operand& operand) {
  return operand.value != kNoValue ? operand.value : Numbers(operand);
}

Operand NodeContext::KnownFloats(absl::string_view suffix, Dims dims,
                                 std::vector<float> numbers) const {
  return OperandOf(
      MakeFloats(absl::StrCat(output_name(), suffix), std::move(dims), std::move(numbers)));
}

absl::StatusOr<ValueId> NodeContext::Emit(OperationParams params, std::vector<ValueId> srcs,
                                          Dims dims, absl::string_view suffix, DataType type) {
  const bool may_be_empty = MayDropAll(params) || absl::c_any_of(srcs, [this](ValueId src) {
                              return IsEmpty(value(src).dims);
                            });
  for (int64_t dim : dims) {
    if (dim < (may_be_empty ? 0 : 1))
      return node.Invalid("the result would have dims ", DimsToString(dims));
  }
  if (dims.size() > kMaxRank) return node.Invalid("the result would have rank ", dims.size());
  if (!FitsInMemory(dims)) return node.Invalid("the result is too large: ", DimsToString(dims));
  const ValueId dst = static_cast<ValueId>(network_->values.size());
  if (KeepsType(params)) type = value(srcs[0]).type;
  network_->values.push_back({absl::StrCat(output_name(), suffix), type, std::move(dims)});
  network_->operations.push_back({node.name(), std::move(params), std::move(srcs), dst});
  return dst;
}

ValueId NodeContext::EmitFurther(Dims dims, absl::string_view suffix) {
  const auto dst = static_cast<ValueId>(network_->values.size());
  network_->values.push_back(
      {absl::StrCat(output_name(), suffix), DataType::kF32, std::move(dims)});
  network_->operations.back().more_dsts.push_back(dst);
  return dst;
}

absl::StatusOr<ValueId> NodeContext::Kept(int i) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, FloatsInPlace(i));
  for (const network::Parameter& parameter : network_->parameters) {
    if (parameter.name == constant->name) return parameter.value;
  }
  return AddParameter(constant, /*learns=*/false, network_);
}

namespace {

// FNV-1a, 32 bits: the same number for a name on every machine.
uint32_t NumberOfName(absl::string_view name) {
  uint32_t number = 2166136261u;
  for (const char byte : name) number = (number ^ static_cast<uint8_t>(byte)) * 16777619u;
  return number;
}

}  // namespace

absl::StatusOr<ValueId> NodeContext::AddMask(const network::DropoutMask& mask, const Dims& dims) {
  const int64_t count = ElementCount(dims).value_or(0), images = dims.empty() ? 1 : dims[0];
  if (count / std::max<int64_t>(images, 1) > std::numeric_limits<uint32_t>::max())
    return node.TooLarge("a mask of more than 2^32 elements of an image");
  const auto value = static_cast<ValueId>(network_->values.size());
  network_->values.push_back({absl::StrCat(output_name(), "/drawn"), DataType::kF32, dims});
  network_->inputs.push_back(value);
  network_->masks.push_back(mask);
  network_->masks.back().value = value;
  network_->masks.back().node = NumberOfName(output_name());
  return value;
}

absl::StatusOr<Operand> NodeContext::EmitOperand(OperationParams params, std::vector<ValueId> srcs,
                                                 Dims dims, absl::string_view suffix,
                                                 DataType type) {
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        Emit(std::move(params), std::move(srcs), dims, suffix, type));
  return Operand{nullptr, dst, std::move(dims)};
}

absl::StatusOr<ValueId> NodeContext::EmitReshape(ValueId src, Dims dims, absl::string_view suffix) {
  if (value(src).dims == dims) return src;
  return Emit(network::Reshape{}, {src}, std::move(dims), suffix);
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
  return SetOutput(OperandOf(std::move(constant)));
}

absl::StatusOr<std::vector<ValueId>> NodeContext::Differentiate(ValueId y,
                                                                const std::vector<ValueId>& xs,
                                                                const std::vector<ValueId>& all) {
  std::vector<bool> follows(network_->values.size(), false);  // computed from one of xs
  for (ValueId x : xs) follows[x] = true;
  for (const network::Operation& operation : network_->operations) {
    if (absl::c_none_of(operation.srcs, [&](ValueId src) { return follows[src]; })) continue;
    if (absl::c_linear_search(all, operation.dst))
      return node.Unimplemented("xs and zs of which one is computed from another");
    follows[operation.dst] = true;
    for (ValueId more : operation.more_dsts) follows[more] = true;
  }
  const Dims dims = value(y).dims;
  const int64_t count = ElementCount(dims).value_or(kLargestFold + 1);
  if (count > kLargestFold) return node.TooLarge("y of more than ", kLargestFold, " elements");
  ConstantPtr ones =
      MakeFloats(absl::StrCat(output_name(), "/ones"), dims, std::vector<float>(count, 1));
  ABSL_ASSIGN_OR_RETURN(const ValueId seed,
                        Emit(network::Literal{std::move(ones)}, {}, dims, "/ones"));
  return network::Differentiate({{y, seed}}, xs, network_);
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
                                 repetition_.interrupted, repetition_.training};
  ABSL_RETURN_IF_ERROR(visit_nodes_(body.nodes, graph_, &tensors_, network_, repetition));
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

}  // namespace tilewire::reader
