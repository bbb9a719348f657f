// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/deciding_inputs.h"

#include <cstring>
#include <memory>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::reader {
namespace {

// Whether the operator reads its input's dims and none of its elements.
bool ReadsDimsOnly(const Node& node) {
  return node.op() == "Shape" || node.op() == "Size" || node.op() == "EyeLike";
}

bool MayDecide(const DeclaredTensor& input) {
  if (!input.has_shape || input.dims.size() > 2) return false;
  if (input.type == DataType::kF16 || input.type == DataType::kBf16) return false;
  int64_t least = 1;
  for (int64_t dim : input.dims) {
    if (dim > kLargestDeciding) return false;
    least *= dim < 0 ? 1 : dim;
  }
  return least <= kLargestDeciding;
}

template <typename Wide, typename T>
std::vector<Wide> Read(absl::string_view bytes) {
  std::vector<Wide> elements;
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + at, sizeof(T));
    elements.push_back(static_cast<Wide>(element));
  }
  return elements;
}

// Marks the tensors that must be known, from the nodes' end to their beginning.
void MarkNeeded(const std::vector<Node>& nodes, const std::vector<Operand>& folded,
                std::vector<bool>* needed) {
  const auto need = [&](TensorId id) {
    if (id != kNoTensor && !folded[id].defined()) (*needed)[id] = true;
  };
  const auto is_needed = [&](TensorId id) { return id != kNoTensor && (*needed)[id]; };
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    bool needs_all = absl::c_any_of(node->outputs, is_needed) && !ReadsDimsOnly(*node);
    for (const auto& [name, body] : node->bodies) {
      if (needs_all) absl::c_for_each(body->outputs, need);
      MarkNeeded(body->nodes, folded, needed);
      needs_all = needs_all || absl::c_any_of(body->inputs, is_needed);
    }
    if (needs_all) absl::c_for_each(node->captures, need);
    const uint8_t deciding = FindOp(*node)->deciding;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (needs_all || (i < 8 && (deciding >> i & 1) != 0)) need(node->inputs[i]);
    }
  }
}

}  // namespace

std::vector<bool> DecidingInputs(const ModelGraph& graph, const std::vector<Operand>& folded) {
  std::vector<bool> needed(graph.tensor_names.size(), false);  // by TensorId
  MarkNeeded(graph.nodes, folded, &needed);
  std::vector<bool> inputs;
  for (const DeclaredTensor& input : graph.inputs)
    inputs.push_back(needed[input.id] && MayDecide(input));
  return inputs;
}

absl::StatusOr<ConstantPtr> DecidingConstant(const std::string& name, DataType type,
                                             const Dims& dims, absl::string_view bytes) {
  const int64_t count = ElementCount(dims).value_or(kLargestDeciding + 1);
  if (count > kLargestDeciding) {
    return ResourceExhausted("input '", name.substr(0, 200), "' decides shapes; it may have ",
                             kLargestDeciding, " elements");
  }
  if (static_cast<int64_t>(bytes.size()) != count * SizeOf(type)) {
    return InvalidArgument("input '", name.substr(0, 200), "' has ", bytes.size(), " bytes");
  }
  if (type == DataType::kF32) return MakeFloats(name, dims, Read<float, float>(bytes));
  if (type == DataType::kF64) return MakeFloats(name, dims, Read<float, double>(bytes));
  if (type == DataType::kBool) return MakeInts(name, dims, Read<int64_t, bool>(bytes));
  auto constant = std::make_shared<Constant>();
  constant->name = name;
  constant->dims = dims;
  if (IsByte(type)) constant->integers = type;
  constant->ints = VisitIntegerOrDouble(
      type, [&](auto element) { return Read<int64_t, decltype(element)>(bytes); });
  return constant;
}

}  // namespace tilewire::reader
