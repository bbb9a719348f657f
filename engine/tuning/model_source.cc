// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/model_source.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/file/tensor_reader.h"
#include "engine/onnx/file/tensor_record.h"
#include "engine/onnx/file/wire_cursor.h"

namespace tilewire::tuning {
namespace {

constexpr int64_t kLeastOpset = 13;  // of scales per channel

FieldPlace PlaceOf(const reader::WireField& field) {
  return {.begin = field.begin, .end = field.offset + field.length, .payload = field.offset};
}

}  // namespace

absl::StatusOr<ModelSource> ModelSource::Read(const std::string& path) {
  ABSL_ASSIGN_OR_RETURN(const auto file, reader::OpenFile(path));
  std::string bytes(file->size(), '\0');
  ABSL_RETURN_IF_ERROR(file->Read(0, file->size(), bytes.data()));
  return Parse(std::move(bytes), path);
}

absl::StatusOr<ModelSource> ModelSource::Parse(std::string bytes, const std::string& name) {
  ModelSource source;
  source.name_ = name;
  source.bytes_ = std::move(bytes);
  ABSL_RETURN_IF_ERROR(source.ReadFields());
  if (source.opset_ < kLeastOpset) {
    return InvalidArgument("'", name, "' is of opset ", source.opset_,
                           "; scales per channel need opset ", kLeastOpset,
                           " or later, which onnx.version_converter makes of it");
  }
  ABSL_RETURN_IF_ERROR(source.ReadGraph());
  ABSL_RETURN_IF_ERROR(source.CheckOrder());
  return source;
}

absl::string_view ModelSource::PayloadOf(const FieldPlace& place) const {
  return absl::string_view(bytes_).substr(place.payload, place.end - place.payload);
}

absl::Status ModelSource::ReadFields() {
  const reader::MemorySource memory(bytes_);
  reader::ByteWindow window(&memory);
  reader::WireCursor cursor(&window, 0, memory.size());
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const reader::WireField field, cursor.Next());
    if (field.number == onnx::ModelProto::kGraphFieldNumber) graph_ = PlaceOf(field);
    if (field.number != onnx::ModelProto::kOpsetImportFieldNumber) continue;
    onnx::OperatorSetIdProto opset;
    if (!opset.ParseFromString(std::string(PayloadOf(PlaceOf(field)))))
      return InvalidArgument("'", name_, "' has a malformed opset");
    if (reader::IsDefaultDomain(opset.domain())) opset_ = opset.version();
  }
  return absl::OkStatus();
}

absl::Status ModelSource::ReadGraph() {
  const reader::MemorySource memory(bytes_);
  reader::ByteWindow window(&memory);
  reader::WireCursor cursor(&window, graph_.payload, graph_.end);
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const reader::WireField field, cursor.Next());
    const FieldPlace place = PlaceOf(field);
    switch (field.number) {
      case onnx::GraphProto::kNodeFieldNumber:
        ABSL_RETURN_IF_ERROR(AddNode(place));
        break;
      case onnx::GraphProto::kInitializerFieldNumber:
        ABSL_RETURN_IF_ERROR(AddInitializer(place));
        break;
      case onnx::GraphProto::kInputFieldNumber:
        ABSL_RETURN_IF_ERROR(AddName(place, &inputs_));
        break;
      case onnx::GraphProto::kOutputFieldNumber:
        ABSL_RETURN_IF_ERROR(AddName(place, &outputs_));
        break;
      default:
        break;
    }
  }
  return absl::OkStatus();
}

absl::Status ModelSource::AddName(const FieldPlace& place,
                                  absl::flat_hash_set<std::string>* names) {
  onnx::ValueInfoProto value;
  if (!value.ParseFromString(std::string(PayloadOf(place))))
    return InvalidArgument("'", name_, "' has a malformed input or output");
  names->insert(value.name());
  names_.insert(value.name());
  return absl::OkStatus();
}

void ModelSource::AddReadInside(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) {
      read_inside_.insert(inner.input().begin(), inner.input().end());
      names_.insert(inner.output().begin(), inner.output().end());
      AddReadInside(inner);
    }
    for (const onnx::ValueInfoProto& output : attribute.g().output())
      read_inside_.insert(output.name());
  }
}

absl::Status ModelSource::AddNode(const FieldPlace& place) {
  SourceNode node{.place = place};
  if (!node.proto.ParseFromString(std::string(PayloadOf(place))))
    return InvalidArgument("'", name_, "' has a malformed node");
  const int index = static_cast<int>(nodes_.size());
  for (const std::string& input : node.proto.input()) readers_[input].push_back(index);
  for (const std::string& output : node.proto.output()) {
    if (output.empty()) continue;  // an optional one that is left out
    producers_[output] = index;
    names_.insert(output);
  }
  AddReadInside(node.proto);
  nodes_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status ModelSource::AddInitializer(const FieldPlace& place) {
  const reader::MemorySource memory(bytes_);
  reader::ByteWindow window(&memory);
  ABSL_ASSIGN_OR_RETURN(const reader::TensorRecord record,
                        reader::ReadTensorRecord(&window, place.payload, place.end));
  if (record.external) {
    return InvalidArgument("'", name_, "' keeps the tensor '", record.name,
                           "' in another file; onnx.save() of what onnx.load() gives makes one "
                           "file of a model of up to 2 GB");
  }
  names_.insert(record.name);
  initializers_[record.name] = {Dims(record.dims.begin(), record.dims.end()), record.type, place};
  return absl::OkStatus();
}

absl::Status ModelSource::CheckOrder() const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& input : nodes_[i].proto.input()) {
      if (ProducerOf(input) < static_cast<int>(i)) continue;
      return InvalidArgument("'", name_, "': node '", nodes_[i].proto.name(),
                             "' stands before the one that computes its input '", input,
                             "'; ONNX asks for the order in which nodes run");
    }
  }
  return absl::OkStatus();
}

const SourceInitializer* ModelSource::Initializer(const std::string& name) const {
  const auto found = initializers_.find(name);
  return found == initializers_.end() ? nullptr : &found->second;
}

int ModelSource::ProducerOf(const std::string& name) const {
  const auto found = producers_.find(name);
  return found == producers_.end() ? -1 : found->second;
}

const std::vector<int>& ModelSource::ReadersOf(const std::string& name) const {
  static const std::vector<int>& none = *new std::vector<int>();
  const auto found = readers_.find(name);
  return found == readers_.end() ? none : found->second;
}

absl::StatusOr<std::vector<float>> ModelSource::LoadFloats(const std::string& name) const {
  const SourceInitializer& initializer = initializers_.at(name);
  const reader::MemorySource memory(bytes_);
  reader::ByteWindow window(&memory);
  reader::TensorReader tensors("");
  ABSL_ASSIGN_OR_RETURN(const network::ConstantPtr constant,
                        tensors.Read(&window, initializer.place.payload, initializer.place.end));
  ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadNumbers(*constant));
  return std::vector<float>(held.values.begin(), held.values.end());
}

}  // namespace tilewire::tuning
