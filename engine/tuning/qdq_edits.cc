// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/qdq_edits.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tilewire::tuning {
namespace {

constexpr const char* kParts[] = {"_u8",         "_s8",   "_s32",     "_real", "_scale",
                                  "_zero_point", "_even", "_factors", "_twin", "_shifted"};

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
  const absl::string_view old = source.bytes();
  const FieldPlace& graph = source.graph();
  int64_t inside = graph.end - graph.payload;
  for (const FileEdit& edit : edits)
    inside += static_cast<int64_t>(edit.bytes.size()) - (edit.end - edit.begin);
  const std::string header = TaggedGraph(inside);
  // Models are large: the file is the only copy that is made here.
  std::string file;
  file.reserve(graph.begin + header.size() + inside + (old.size() - graph.end));
  absl::StrAppend(&file, old.substr(0, graph.begin), header);
  int64_t at = graph.payload;
  for (FileEdit& edit : edits) {
    absl::StrAppend(&file, old.substr(at, edit.begin - at), edit.bytes);
    at = edit.end;
    edit.bytes = std::string();
  }
  absl::StrAppend(&file, old.substr(at));
  return file;
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

void SetAxis(int axis, onnx::NodeProto* node) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name("axis");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(axis);
}

void SetBias(const std::string& name, onnx::NodeProto* node) {
  while (node->input_size() < 3) node->add_input("");
  node->set_input(2, name);
}

// Tells initializers of one layer from those of others.
std::string OwnPart(const Layer& layer) { return absl::StrCat("_", layer.node); }

}  // namespace

std::string QuantizeNodeOf(const std::string& tensor) {
  return absl::StrCat(tensor, "_QuantizeLinear");
}

QdqEdits::QdqEdits(const ModelSource& source) : source_(source) {
  while (absl::c_any_of(kParts, [&](const char* part) { return IsTaken(part); }))
    absl::StrAppend(&mark_, "_");
}

bool QdqEdits::IsTaken(const char* part) const {
  const std::string marked = absl::StrCat(mark_, part);
  return absl::c_any_of(source_.names(),
                        [&](const std::string& name) { return absl::StrContains(name, marked); });
}

std::string QdqEdits::NameOf(const std::string& tensor, const char* part,
                             const std::string& of) const {
  return absl::StrCat(tensor, mark_, part, of);
}

onnx::TensorProto* QdqEdits::AddTensor(const std::string& name, const std::vector<int64_t>& dims,
                                       onnx::TensorProto::DataType type) {
  onnx::TensorProto* tensor = added_.add_initializer();
  for (int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_data_type(type);
  tensor->set_name(name);
  return tensor;
}

std::string QdqEdits::AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                                const std::vector<float>& values) {
  AddTensor(name, dims, onnx::TensorProto::FLOAT)
      ->set_raw_data(values.data(), values.size() * sizeof(float));
  return name;
}

void QdqEdits::AddOutput(const std::string& tensor) {
  onnx::ValueInfoProto* output = added_.add_output();
  output->set_name(tensor);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

std::string QdqEdits::ConvertBeside(const std::string& tensor,
                                    const network::QuantizationParams& params,
                                    const std::vector<float>& factors) {
  const std::string integers = NameOf(tensor, "_u8"), real = NameOf(tensor, "_real");
  const std::string scale = AddFloats(NameOf(tensor, "_scale"), {}, {params.scale});
  const std::string zero = NameOf(tensor, "_zero_point");
  AddTensor(zero, {}, onnx::TensorProto::UINT8)
      ->set_raw_data(std::string(1, static_cast<char>(params.zero_point)));
  onnx::GraphProto nodes;
  std::string src = tensor;
  if (!factors.empty()) {
    src = NameOf(tensor, "_even");
    AddNode(&nodes, "Div", src,
            {tensor, AddFloats(NameOf(tensor, "_factors"),
                               {static_cast<int64_t>(factors.size()), 1, 1}, factors)},
            src);
  }
  AddNode(&nodes, "QuantizeLinear", QuantizeNodeOf(tensor), {src, scale, zero}, integers);
  AddNode(&nodes, "DequantizeLinear", real, {integers, scale, zero}, real);
  const int first = *absl::c_min_element(source_.ReadersOf(tensor));
  absl::StrAppend(&before_[first], nodes.SerializeAsString());
  return real;
}

void QdqEdits::Convert(const std::string& tensor, const network::QuantizationParams& params) {
  const std::string real = ConvertBeside(tensor, params, {});
  for (int reader : source_.ReadersOf(tensor)) Rewire(reader, tensor, real);
}

void QdqEdits::Name(const Layer& layer) {
  if (source_.nodes()[layer.node].proto.name() == layer.name) return;
  Changed(layer.node).set_name(layer.name);
}

std::string QdqEdits::AddWeights(const Layer& layer, const LayerIntegers& integers) {
  const std::string within =
      layer.largest_weight == kLargestWeight ? "" : absl::StrCat("_within_", layer.largest_weight);
  const std::string of = absl::StrCat(layer.axis == 0 ? "" : "_columns", within,
                                      integers.has_own_weights ? OwnPart(layer) : "");
  const std::string real = NameOf(layer.weights, "_real", of);
  if (!weights_.insert(real).second) return real;
  const Dims& dims = integers.dims;
  const std::string name = NameOf(layer.weights, "_s8", of);
  AddTensor(name, {dims.begin(), dims.end()}, onnx::TensorProto::INT8)
      ->set_raw_data(integers.weights->elements.data(), integers.weights->elements.size());
  const std::vector<int64_t> outputs = {dims[layer.axis]};
  const std::string scale =
      AddFloats(NameOf(layer.weights, "_scale", of), outputs, integers.weights->scale);
  const std::string zero = NameOf(layer.weights, "_zero_point", of);
  AddTensor(zero, outputs, onnx::TensorProto::INT8)
      ->set_raw_data(std::string(dims[layer.axis], '\0'));
  onnx::GraphProto nodes;
  SetAxis(layer.axis, AddNode(&nodes, "DequantizeLinear", real, {name, scale, zero}, real));
  absl::StrAppend(&before_[layer.node], nodes.SerializeAsString());
  return real;
}

std::string QdqEdits::AddBiasIntegers(const Layer& layer, const LayerIntegers& integers,
                                      const std::vector<int32_t>& elements) {
  // A layer without a bias of its own is told from others by its weights.
  const std::string base = layer.bias.empty() ? absl::StrCat(layer.weights, "_bias") : layer.bias;
  const std::string of = OwnPart(layer);
  std::vector<float> scales;
  for (float scale : integers.weights->scale) scales.push_back(integers.src_scale * scale);
  const std::string name = NameOf(base, "_s32", of);
  const std::vector<int64_t> outputs = {static_cast<int64_t>(elements.size())};
  AddTensor(name, outputs, onnx::TensorProto::INT32)
      ->set_raw_data(elements.data(), elements.size() * sizeof(int32_t));
  const std::string scale = AddFloats(NameOf(base, "_scale", of), outputs, scales);
  const std::string real = NameOf(base, "_real", of);
  onnx::GraphProto nodes;
  SetAxis(0, AddNode(&nodes, "DequantizeLinear", real, {name, scale}, real));
  absl::StrAppend(&before_[layer.node], nodes.SerializeAsString());
  return real;
}

std::optional<std::string> QdqEdits::BiasOf(const Layer& layer, const LayerIntegers& integers) {
  if (integers.biases.empty()) return std::nullopt;
  const auto elements =
      layer.sum < 0 ? ToIntegers(integers.biases, integers.src_scale, integers.weights->scale)
                    : std::nullopt;
  if (elements) return AddBiasIntegers(layer, integers, *elements);
  if (!integers.has_own_biases) return std::nullopt;
  const std::string base = layer.bias.empty() ? layer.weights : layer.bias;
  return AddFloats(NameOf(base, "_shifted", OwnPart(layer)),
                   {static_cast<int64_t>(integers.biases.size())}, integers.biases);
}

void QdqEdits::Replace(const Layer& layer, const LayerIntegers& integers) {
  Rewire(layer.node, layer.weights, AddWeights(layer, integers));
  const std::optional<std::string> bias = BiasOf(layer, integers);
  if (!bias) return;
  if (layer.sum >= 0) return Rewire(layer.sum, layer.bias, *bias);
  SetBias(*bias, &Changed(layer.node));
}

std::string QdqEdits::AddTwin(const Layer& layer, const LayerIntegers& integers,
                              const std::string& src) {
  onnx::GraphProto nodes;
  onnx::NodeProto& twin = *nodes.add_node() = source_.nodes()[layer.node].proto;
  twin.set_input(0, src);
  twin.set_input(1, AddWeights(layer, integers));
  const std::optional<std::string> bias = layer.sum < 0 ? BiasOf(layer, integers) : std::nullopt;
  if (bias) SetBias(*bias, &twin);
  const std::string result = NameOf(twin.output(0), "_twin", OwnPart(layer));
  twin.set_output(0, result);
  twin.set_name(result);
  absl::StrAppend(&before_[layer.node], nodes.SerializeAsString());
  return result;
}

std::string QdqEdits::Finish() {
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
  onnx::GraphProto().Swap(&added_);  // Clear() would keep its memory
  return Edited(source_, std::move(edits));
}

onnx::NodeProto& QdqEdits::Changed(int node) {
  return rewired_.try_emplace(node, source_.nodes()[node].proto).first->second;
}

void QdqEdits::Rewire(int node, const std::string& before, const std::string& now) {
  for (std::string& input : *Changed(node).mutable_input()) {
    if (input == before) input = now;
  }
}

bool QdqEdits::IsUnread(const std::string& name) const {
  if (source_.IsInput(name) || source_.IsOutput(name) || source_.IsReadInside(name)) return false;
  const std::vector<int>& readers = source_.ReadersOf(name);
  return !readers.empty() && absl::c_all_of(readers, [&](int reader) {
    const auto found = rewired_.find(reader);
    return found != rewired_.end() && !absl::c_linear_search(found->second.input(), name);
  });
}

}  // namespace tilewire::tuning
