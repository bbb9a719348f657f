// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/stages/held_tensor.h"

#include <cstring>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kLargestInF32 = int64_t{1} << 24;

absl::Status CheckOutputs(const Node& node, const std::vector<Operand>& tensors) {
  for (TensorId id : node.outputs) {
    if (id != kNoTensor && tensors[id].constant == nullptr)
      return node.TooLarge("the result is larger than ", kLargestFold, " elements");
  }
  return absl::OkStatus();
}

// Output 0 of what takes elements has the type of input 0.
DataType TypeOfResult(const Node& node, size_t i, const std::vector<HeldTensor>& inputs) {
  const bool takes_elements =
      node.op() == "Compress" || node.op() == "Unique" || FindOp(node)->late_dims != nullptr;
  if (!takes_elements || i > 0) return DataType::kF32;
  for (const HeldTensor& input : inputs) {
    if (input.tensor.id == node.inputs[0]) return input.tensor.type;
  }
  return DataType::kF32;
}

}  // namespace

ConstantPtr AsConstant(const std::string& name, const HeldTensor& held) {
  const StagedTensor& tensor = held.tensor;
  auto constant = std::make_shared<Constant>();
  constant->name = name;
  constant->dims = tensor.dims;
  constant->is_float = !tensor.is_integer;
  const size_t count = static_cast<size_t>(constant->count());
  const float* const floats = reinterpret_cast<const float*>(held.bytes->data());
  if (tensor.type == DataType::kF32) {
    if (tensor.is_integer) {
      constant->ints.assign(floats, floats + count);
      return constant;
    }
    constant->floats = {floats, count};
    constant->owner = held.bytes;
    return constant;
  }
  if (IsByte(tensor.type)) constant->integers = tensor.type;
  std::vector<float> numbers;
  VisitIntegerOrDouble(tensor.type, [&](auto element) {
    const auto* elements = reinterpret_cast<const decltype(element)*>(held.bytes->data());
    if (tensor.is_integer) {
      constant->ints.assign(elements, elements + count);
    } else {
      numbers.assign(elements, elements + count);
    }
  });
  return tensor.is_integer ? constant : MakeFloats(name, tensor.dims, std::move(numbers));
}

absl::StatusOr<HeldTensor> AsTensor(const Constant& constant, TensorId id, DataType type) {
  const int64_t count = constant.count();
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer bytes, AlignedBuffer::Allocate(count * SizeOf(type)));
  if (constant.is_float) {
    if (count > 0) std::memcpy(bytes.data(), constant.floats.data(), count * sizeof(float));
  } else if (type == DataType::kF32) {
    float* const floats = reinterpret_cast<float*>(bytes.data());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t integer = constant.ints[i];
      if (integer > kLargestInF32 || integer < -kLargestInF32)
        return Unimplemented("'", constant.name.substr(0, 200), "' has ", integer,
                             "; it is held in f32 here, which counts to ", kLargestInF32);
      floats[i] = static_cast<float>(integer);
    }
  } else {
    VisitIntegerOrDouble(type, [&](auto element) {
      auto* const elements = reinterpret_cast<decltype(element)*>(bytes.data());
      for (int64_t i = 0; i < count; ++i)
        elements[i] = static_cast<decltype(element)>(constant.ints[i]);
    });
  }
  return HeldTensor{{id, type, !constant.is_float, constant.dims},
                    std::make_shared<const AlignedBuffer>(std::move(bytes))};
}

absl::StatusOr<HeldTensor> AsTensor(const Constant& constant, TensorId id) {
  bool is_wide = false;
  for (int64_t integer : constant.ints)
    is_wide = is_wide || integer > kLargestInF32 || integer < -kLargestInF32;
  return AsTensor(constant, id, is_wide ? DataType::kS64 : DataType::kF32);
}

absl::StatusOr<std::vector<HeldTensor>> ComputeLate(const Node& node, const ModelGraph& graph,
                                                    const Cut& cut,
                                                    const std::vector<HeldTensor>& inputs,
                                                    const Interrupted& interrupted) {
  std::vector<Operand> tensors(graph.tensor_names.size());
  for (TensorId id : node.inputs) {
    if (id == kNoTensor || cut.tensors[id].constant == nullptr) continue;
    ABSL_ASSIGN_OR_RETURN(ConstantPtr known, InMemory(cut.tensors[id].constant));
    tensors[id] = OperandOf(std::move(known));
  }
  for (const HeldTensor& input : inputs) {
    const TensorId id = input.tensor.id;
    if (ElementCount(input.tensor.dims).value_or(kLargestFold + 1) > kLargestFold)
      return node.TooLarge("takes ", DimsToString(input.tensor.dims), "; supported are ",
                           kLargestFold, " elements");
    if (input.tensor.type == DataType::kF64)
      return node.Unimplemented("takes computed elements of f64");
    tensors[id] = OperandOf(AsConstant(graph.tensor_names[id], input));
  }
  network::Network scratch;
  NodeContext context(node, graph, &tensors, &scratch, &VisitNodes,
                      {.suffix = "", .interrupted = &interrupted});
  ABSL_RETURN_IF_ERROR(FindOp(node)->build(context));
  ABSL_RETURN_IF_ERROR(CheckOutputs(node, tensors));
  std::vector<HeldTensor> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr result, InMemory(tensors[node.outputs[i]].constant));
    ABSL_ASSIGN_OR_RETURN(outputs.emplace_back(),
                          AsTensor(*result, node.outputs[i], TypeOfResult(node, i, inputs)));
  }
  return outputs;
}

const Body& BodyOfLoop(const Node& loop) { return *loop.bodies.at("body"); }

StagedTensor RunNumber(const Node& loop) {
  return {BodyOfLoop(loop).inputs[0], DataType::kF32, /*is_integer=*/true, {}};
}

absl::StatusOr<StageStart> BodyStart(const Node& loop, const Cut& cut,
                                     const std::vector<StagedTensor>& carried) {
  const auto found = loop.bodies.find("body");
  if (found == loop.bodies.end()) return loop.Invalid("attribute 'body' is missing");
  const Body& body = *found->second;
  const size_t states = carried.size();
  if (body.inputs.size() != states + 2 || body.outputs.size() < states + 1 ||
      loop.outputs.size() > body.outputs.size() - 1)
    return loop.Invalid("a body with ", body.inputs.size(), " inputs and ", body.outputs.size(),
                        " outputs");
  StageStart start{{&body.nodes, body.outputs}, cut.tensors, {RunNumber(loop)}};
  for (size_t i = 0; i < states; ++i) {
    start.inputs.push_back(carried[i]);
    start.inputs.back().id = body.inputs[i + 2];
  }
  for (const StagedTensor& outer : ReadBy(loop, cut)) start.inputs.push_back(outer);
  start.tensors[body.inputs[1]] = OperandOf(MakeInts("", {}, {1}));
  return start;
}

}  // namespace tilewire::reader
