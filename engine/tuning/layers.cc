// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/layers.h"

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_file.h"

namespace tilewire::tuning {
namespace {

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

bool IsOfIntegers(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  return absl::StrContains(op, "QuantizeLinear") || absl::StartsWith(op, "QLinear") ||
         absl::EndsWith(op, "Integer") || op == "QGemm" || op == "MatMulNBits";
}

float FloatOf(const onnx::NodeProto& node, absl::string_view name, float otherwise) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->f();
}

int64_t IntOf(const onnx::NodeProto& node, absl::string_view name) {
  const onnx::AttributeProto* attribute = FindAttribute(node, name);
  return attribute == nullptr ? 0 : attribute->i();
}

// The dimension of the weights that counts the outputs; nullopt: the node is not such a layer.
std::optional<int> OutputAxis(const onnx::NodeProto& node, const Dims& weights) {
  if (node.op_type() == "Conv" && weights.size() >= 3) return 0;
  if (weights.size() != 2) return std::nullopt;
  if (node.op_type() == "MatMul") return 1;
  if (node.op_type() != "Gemm" || IntOf(node, "transA") != 0) return std::nullopt;
  if (FloatOf(node, "alpha", 1) != 1 || FloatOf(node, "beta", 1) != 1) return std::nullopt;
  return IntOf(node, "transB") != 0 ? 0 : 1;
}

void FindBias(const ModelSource& source, const Dims& dims, Layer* layer) {
  const onnx::NodeProto& node = source.nodes()[layer->node].proto;
  const auto is_bias = [&](const std::string& name) {
    const SourceInitializer* initializer = source.Initializer(name);
    return initializer != nullptr && initializer->type == onnx::TensorProto::FLOAT &&
           initializer->dims == dims && !source.IsInput(name);
  };
  const std::string& result = node.output(0);
  if (layer->op != "MatMul") {
    const bool has_bias = node.input_size() > 2 && !node.input(2).empty();
    if (has_bias && is_bias(node.input(2))) layer->bias = node.input(2);
    layer->can_shift = !has_bias || !layer->bias.empty();
    return;
  }
  const std::vector<int>& readers = source.ReadersOf(result);
  if (readers.size() != 1 || source.IsOutput(result) || source.IsReadInside(result)) return;
  const onnx::NodeProto& sum = source.nodes()[readers[0]].proto;
  if (sum.op_type() != "Add") return;
  const std::string& other = sum.input(sum.input(0) == result ? 1 : 0);
  if (!is_bias(other)) return;
  layer->bias = other;
  layer->sum = readers[0];
  layer->can_shift = true;
}

std::optional<Layer> LayerOf(const ModelSource& source, int index) {
  const onnx::NodeProto& node = source.nodes()[index].proto;
  if (!reader::IsDefaultDomain(node.domain()) || node.input_size() < 2) return std::nullopt;
  const SourceInitializer* weights = source.Initializer(node.input(1));
  if (weights == nullptr || weights->type != onnx::TensorProto::FLOAT ||
      source.IsInput(node.input(1)) || source.Initializer(node.input(0)) != nullptr)
    return std::nullopt;
  const std::optional<int> axis = OutputAxis(node, weights->dims);
  if (!axis || ElementCount(weights->dims).value_or(0) <= 0) return std::nullopt;
  Layer layer{.node = index,
              .name = node.name(),
              .step = node.name().empty() ? absl::StrCat("#", index) : node.name(),
              .op = node.op_type(),
              .input = node.input(0),
              .weights = node.input(1),
              .axis = *axis};
  FindBias(source, Dims{weights->dims[*axis]}, &layer);
  return layer;
}

// Outputs have names of their own, which nodes need not have.
void MakeNamesUnique(const ModelSource& source, std::vector<Layer>* layers) {
  absl::flat_hash_map<absl::string_view, int> nodes_named;
  for (const SourceNode& node : source.nodes()) ++nodes_named[node.proto.name()];
  for (Layer& layer : *layers) {
    const onnx::NodeProto& node = source.nodes()[layer.node].proto;
    if (layer.name.empty() || nodes_named[node.name()] > 1) layer.name = node.output(0);
  }
}

}  // namespace

absl::StatusOr<std::vector<Layer>> FindLayers(const ModelSource& source) {
  std::vector<Layer> layers;
  for (size_t i = 0; i < source.nodes().size(); ++i) {
    const onnx::NodeProto& node = source.nodes()[i].proto;
    if (IsOfIntegers(node)) {
      return absl::FailedPreconditionError(absl::StrCat("the model is quantized already: node '",
                                                        node.name(), "' is a ", node.op_type(),
                                                        "; tuning starts from the f32 file"));
    }
    if (auto layer = LayerOf(source, static_cast<int>(i))) layers.push_back(*std::move(layer));
  }
  MakeNamesUnique(source, &layers);
  if (!layers.empty()) return layers;
  return absl::FailedPreconditionError(
      "no layer of the model can be int8: it has no Conv, Gemm or MatMul whose weights are an "
      "initializer of f32");
}

void FitWeightsTo(cpu::Isa isa, const ModelSource& source, std::vector<Layer>* layers) {
  const bool has_dot_products =
      isa.Includes(cpu::Isa::kAvx2Vnni) || isa.Includes(cpu::Isa::kAvx512Vnni);
  if (has_dot_products || !isa.Includes(cpu::Isa::kAvx2)) return;
  for (Layer& layer : *layers) {
    const Dims& dims = source.Initializer(layer.weights)->dims;
    // A first layer on grey pictures has one input, too, but one group.
    const int64_t groups = IntOf(source.nodes()[layer.node].proto, "group");
    const bool is_depthwise = groups > 1 && dims[1] == 1 && dims[0] == groups;
    if (!is_depthwise) layer.largest_weight = kLargestPaired;
  }
}

std::vector<bool> IsInt8(const Precisions& precisions) {
  std::vector<bool> is_int8;
  for (TunedPrecision precision : precisions) is_int8.push_back(precision == TunedPrecision::kInt8);
  return is_int8;
}

std::map<std::string, Precision> NodePrecisions(const std::vector<Layer>& layers,
                                                const Precisions& precisions) {
  std::map<std::string, Precision> nodes;
  for (size_t i = 0; i < layers.size(); ++i) {
    nodes[layers[i].name] =
        precisions[i] == TunedPrecision::kBf16 ? Precision::kBf16 : Precision::kExact;
  }
  return nodes;
}

}  // namespace tilewire::tuning
