// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/qdq_file.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::tuning {
namespace {

using Params = std::map<std::string, network::QuantizationParams>;

// Bytes in the place of [begin, end) of the file; an insertion is before `begin`.
struct FileEdit {
  int64_t begin = 0, end = 0;
  std::string bytes;
};

std::string TaggedGraph(int64_t length) {
  // Tag of a length-delimited field, and the length as a varint.
  std::string header(1, static_cast<char>(onnx::ModelProto::kGraphFieldNumber << 3 | 2));
  auto rest = static_cast<uint64_t>(length);
  for (; rest >= 0x80; rest >>= 7) header.push_back(static_cast<char>(rest | 0x80));
  header.push_back(static_cast<char>(rest));
  return header;
}

// The file with edits of its graph.
std::string Edited(const ModelSource& source, std::vector<FileEdit> edits) {
  absl::c_stable_sort(edits,
                      [](const FileEdit& a, const FileEdit& b) { return a.begin < b.begin; });
  const std::string& old = source.bytes();
  const FieldPlace& graph = source.graph();
  std::string inside;
  inside.reserve(graph.end - graph.payload);
  int64_t at = graph.payload;
  for (const FileEdit& edit : edits) {
    absl::StrAppend(&inside, absl::string_view(old).substr(at, edit.begin - at), edit.bytes);
    at = edit.end;
  }
  absl::StrAppend(&inside, absl::string_view(old).substr(at, graph.end - at));
  return absl::StrCat(absl::string_view(old).substr(0, graph.begin),
                      TaggedGraph(static_cast<int64_t>(inside.size())), inside,
                      absl::string_view(old).substr(graph.end));
}

// One file that is written; the parts of new names are unlike all that there are.
class QdqEdits {
 public:
  explicit QdqEdits(const ModelSource& source) : source_(source) {
    while (absl::c_any_of(kParts, [&](const char* part) { return IsTaken(part); }))
      absl::StrAppend(&mark_, "_");
  }

  // The tensor becomes u8 and real again; nodes that read it read the result.
  void Convert(const std::string& tensor, const network::QuantizationParams& params) {
    const std::string integers = NameOf(tensor, "_u8"), real = NameOf(tensor, "_real");
    const std::string scale = AddFloats(NameOf(tensor, "_scale"), {}, {params.scale});
    const std::string zero = AddZeroPoint(NameOf(tensor, "_zero_point"), params.zero_point);
    onnx::GraphProto nodes;
    AddNode(&nodes, "QuantizeLinear", QuantizeNodeOf(tensor), {tensor, scale, zero}, integers);
    AddNode(&nodes, "DequantizeLinear", real, {integers, scale, zero}, real);
    std::vector<int> readers = source_.ReadersOf(tensor);
    for (int reader : readers) Rewire(reader, tensor, real);
    const int first = *absl::c_min_element(readers);
    absl::StrAppend(&before_[first], nodes.SerializeAsString());
  }

  // Nodes shift in the file, and some share a name: the layer's node gets one to be found by.
  void Name(const Layer& layer) {
    const onnx::NodeProto& node = source_.nodes()[layer.node].proto;
    if (node.name() == layer.name) return;
    rewired_.try_emplace(layer.node, node).first->second.set_name(layer.name);
  }

  // The weights of a layer, and its bias where it fits integers, become initializers of integers.
  void Replace(const Layer& layer, const Dims& dims, const ByteWeights& weights,
               absl::Span<const float> biases, float src_scale) {
    Rewire(layer.node, layer.weights, AddWeights(layer, dims, weights));
    const auto integers =
        biases.empty() ? std::nullopt : ToIntegers(biases, src_scale, weights.scale);
    if (!integers) return;
    const std::string of = absl::StrCat("_", layer.node);
    std::vector<float> scales;
    for (float scale : weights.scale) scales.push_back(src_scale * scale);
    const std::string name = NameOf(layer.bias, "_s32", of);
    const std::vector<int64_t> outputs = {static_cast<int64_t>(integers->size())};
    AddTensor(name, outputs, onnx::TensorProto::INT32)
        ->set_raw_data(integers->data(), integers->size() * sizeof(int32_t));
    const std::string scale = AddFloats(NameOf(layer.bias, "_scale", of), outputs, scales);
    const std::string real = NameOf(layer.bias, "_real", of);
    onnx::GraphProto nodes;
    SetAxis(0, AddNode(&nodes, "DequantizeLinear", real, {name, scale}, real));
    absl::StrAppend(&before_[layer.node], nodes.SerializeAsString());
    Rewire(layer.node, layer.bias, real);
  }

  bool IsEmpty() const { return before_.empty() && rewired_.empty(); }

  std::string Finish() {
    std::vector<FileEdit> edits;
    for (const auto& [node, bytes] : before_) {
      const int64_t begin = source_.nodes()[node].place.begin;
      edits.push_back({begin, begin, bytes});
    }
    for (const auto& [node, proto] : rewired_) {
      const FieldPlace& place = source_.nodes()[node].place;
      onnx::GraphProto one;
      *one.add_node() = proto;
      edits.push_back({place.begin, place.end, one.SerializeAsString()});
    }
    for (const auto& [name, initializer] : source_.initializers()) {
      if (IsUnread(name)) edits.push_back({initializer.place.begin, initializer.place.end, ""});
    }
    edits.push_back({source_.graph().end, source_.graph().end, added_.SerializeAsString()});
    return Edited(source_, std::move(edits));
  }

 private:
  static constexpr const char* kParts[] = {"_u8", "_s8", "_s32", "_real", "_scale", "_zero_point"};

  bool IsTaken(const char* part) const {
    const std::string marked = absl::StrCat(mark_, part);
    return absl::c_any_of(source_.names(),
                          [&](const std::string& name) { return absl::StrContains(name, marked); });
  }
  std::string NameOf(const std::string& tensor, const char* part,
                     const std::string& of = "") const {
    return absl::StrCat(tensor, mark_, part, of);
  }

  onnx::NodeProto* AddNode(onnx::GraphProto* nodes, const char* op, const std::string& name,
                           const std::vector<std::string>& inputs, const std::string& output) {
    onnx::NodeProto* node = nodes->add_node();
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    node->set_name(name);
    node->set_op_type(op);
    return node;
  }
  static void SetAxis(int axis, onnx::NodeProto* node) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("axis");
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(axis);
  }

  onnx::TensorProto* AddTensor(const std::string& name, const std::vector<int64_t>& dims,
                               onnx::TensorProto::DataType type) {
    onnx::TensorProto* tensor = added_.add_initializer();
    for (int64_t dim : dims) tensor->add_dims(dim);
    tensor->set_data_type(type);
    tensor->set_name(name);
    return tensor;
  }
  std::string AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                        const std::vector<float>& values) {
    AddTensor(name, dims, onnx::TensorProto::FLOAT)
        ->set_raw_data(values.data(), values.size() * sizeof(float));
    return name;
  }
  std::string AddZeroPoint(const std::string& name, int32_t value) {
    AddTensor(name, {}, onnx::TensorProto::UINT8)
        ->set_raw_data(std::string(1, static_cast<char>(value)));
    return name;
  }

  // Returns the name of the real weights, which layers may share.
  std::string AddWeights(const Layer& layer, const Dims& dims, const ByteWeights& weights) {
    const std::string of = layer.axis == 0 ? "" : "_columns";
    const std::string real = NameOf(layer.weights, "_real", of);
    if (!weights_.insert(real).second) return real;
    const std::string name = NameOf(layer.weights, "_s8", of);
    AddTensor(name, {dims.begin(), dims.end()}, onnx::TensorProto::INT8)
        ->set_raw_data(weights.elements.data(), weights.elements.size());
    const std::vector<int64_t> outputs = {dims[layer.axis]};
    const std::string scale =
        AddFloats(NameOf(layer.weights, "_scale", of), outputs, weights.scale);
    const std::string zero = NameOf(layer.weights, "_zero_point", of);
    AddTensor(zero, outputs, onnx::TensorProto::INT8)
        ->set_raw_data(std::string(dims[layer.axis], '\0'));
    onnx::GraphProto nodes;
    SetAxis(layer.axis, AddNode(&nodes, "DequantizeLinear", real, {name, scale, zero}, real));
    absl::StrAppend(&before_[layer.node], nodes.SerializeAsString());
    return real;
  }

  // A node reads `now` where it read `before`. Layers come in the order of the file, so that what
  // two share stands before the first.
  void Rewire(int node, const std::string& before, const std::string& now) {
    onnx::NodeProto& proto = rewired_.try_emplace(node, source_.nodes()[node].proto).first->second;
    for (std::string& input : *proto.mutable_input()) {
      if (input == before) input = now;
    }
  }

  bool IsUnread(const std::string& name) const {
    if (source_.IsInput(name) || source_.IsOutput(name) || source_.IsReadInside(name)) return false;
    const std::vector<int>& readers = source_.ReadersOf(name);
    return !readers.empty() && absl::c_all_of(readers, [&](int reader) {
      const auto found = rewired_.find(reader);
      return found != rewired_.end() && !absl::c_linear_search(found->second.input(), name);
    });
  }

  const ModelSource& source_;
  std::string mark_;
  onnx::GraphProto added_;             // initializers
  std::map<int, std::string> before_;  // fields of the graph, before a node
  std::map<int, onnx::NodeProto> rewired_;
  absl::flat_hash_set<std::string> weights_;  // that were added, by their real name
};

}  // namespace

std::string WithOutputs(const ModelSource& source, const std::vector<std::string>& tensors) {
  onnx::GraphProto outputs;
  for (const std::string& tensor : tensors) {
    onnx::ValueInfoProto* output = outputs.add_output();
    output->set_name(tensor);
    output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  }
  const int64_t end = source.graph().end;
  return Edited(source, {{end, end, outputs.SerializeAsString()}});
}

std::string QuantizeNodeOf(const std::string& tensor) {
  return absl::StrCat(tensor, "_QuantizeLinear");
}

absl::StatusOr<const ByteWeights*> QdqWriter::BytesOf(const Layer& layer) {
  const std::string key = absl::StrCat(layer.weights, "/", layer.axis);
  if (const auto found = bytes_.find(key); found != bytes_.end()) return &found->second;
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> weights, source_.LoadFloats(layer.weights));
  if (!absl::c_all_of(weights, [](float weight) { return std::isfinite(weight); }))
    return InvalidArgument("weights '", layer.weights, "' are not all finite");
  const Dims& dims = source_.Initializer(layer.weights)->dims;
  return &bytes_.emplace(key, ToBytes(weights, dims, layer.axis)).first->second;
}

absl::StatusOr<std::string> QdqWriter::Write(const Precisions& precisions, const Params& tensors) {
  QdqEdits edits(source_);
  for (const auto& [tensor, params] : tensors) edits.Convert(tensor, params);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    if (precisions[i] != TunedPrecision::kExact) edits.Name(layer);
    if (precisions[i] != TunedPrecision::kInt8) continue;
    const auto src = tensors.find(layer.input);
    if (src == tensors.end())
      return Internal("node '", layer.name, "': its input '", layer.input, "' has no range");
    ABSL_ASSIGN_OR_RETURN(const ByteWeights* weights, BytesOf(layer));
    std::vector<float> biases;
    if (!layer.bias.empty()) {
      ABSL_ASSIGN_OR_RETURN(biases, source_.LoadFloats(layer.bias));
    }
    edits.Replace(layer, source_.Initializer(layer.weights)->dims, *weights, biases,
                  src->second.scale);
  }
  return edits.IsEmpty() ? source_.bytes() : edits.Finish();
}

}  // namespace tilewire::tuning
