// SPDX-License-Identifier: Apache-2.0
//
// The file is walked field by field. Initializers, nearly all of it, are read in place
// (tensor_reader.h); the rest of the graph is gathered into one small message that protobuf parses.
#include "engine/onnx/file/onnx_file.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "engine/onnx/file/tensor_reader.h"
#include "engine/onnx/file/wire_cursor.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kOldestOpset = 1;
constexpr int64_t kNewestOpset = 25;
// Nodes, names and small constants; protobuf's own limit is 2 GiB.
constexpr int64_t kLargestSkeleton = int64_t{1} << 30;
constexpr int64_t kLargestFunction = int64_t{1} << 26;

struct Parts {
  std::string skeleton;  // a GraphProto without initializers
  std::vector<network::ConstantPtr> initializers;
  std::vector<onnx::OperatorSetIdProto> opsets;
  std::vector<onnx::FunctionProto> functions;
  Problems problems;
  int64_t ir_version = 0;
  bool has_graph = false;
};

absl::Status AppendBytes(const ByteSource& source, int64_t begin, int64_t end, std::string* bytes) {
  const size_t old_size = bytes->size();
  if (static_cast<int64_t>(old_size) + end - begin > kLargestSkeleton) {
    return InvalidArgument("more than 1 GiB beside the initializers");
  }
  bytes->resize(old_size + (end - begin));
  return source.Read(begin, end - begin, bytes->data() + old_size);
}

absl::Status ReadGraph(ByteWindow* window, const WireField& graph, TensorReader* tensors,
                       Parts* parts) {
  if (graph.type != WireType::kLengthDelimited)
    return InvalidArgument("not a model: malformed graph");
  parts->has_graph = true;
  WireCursor cursor(window, graph.offset, graph.offset + graph.length);
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
    const int64_t end = field.offset + field.length;
    switch (field.number) {
      case onnx::GraphProto::kInitializerFieldNumber:
      case onnx::GraphProto::kSparseInitializerFieldNumber: {
        if (field.type != WireType::kLengthDelimited) {
          return InvalidArgument("not a model: malformed initializer");
        }
        const bool is_sparse = field.number == onnx::GraphProto::kSparseInitializerFieldNumber;
        absl::StatusOr<network::ConstantPtr> tensor =
            is_sparse ? tensors->ReadSparse(window, field.offset, end)
                      : tensors->Read(window, field.offset, end);
        if (absl::IsUnimplemented(tensor.status())) {
          parts->problems.Add(tensor.status());
          break;
        }
        ABSL_RETURN_IF_ERROR(tensor.status());
        parts->initializers.push_back(*std::move(tensor));
        break;
      }
      case onnx::GraphProto::kNodeFieldNumber:
      case onnx::GraphProto::kNameFieldNumber:
      case onnx::GraphProto::kInputFieldNumber:
      case onnx::GraphProto::kOutputFieldNumber:
        ABSL_RETURN_IF_ERROR(AppendBytes(window->source(), field.begin, end, &parts->skeleton));
        break;
      default:
        break;  // documentation, inferred shapes
    }
  }
  return absl::OkStatus();
}

absl::Status ReadModel(ByteWindow* window, TensorReader* tensors, Parts* parts) {
  WireCursor cursor(window, 0, window->source().size());
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
    if (field.number == onnx::ModelProto::kGraphFieldNumber) {
      ABSL_RETURN_IF_ERROR(ReadGraph(window, field, tensors, parts));
    } else if (field.number == onnx::ModelProto::kIrVersionFieldNumber) {
      parts->ir_version = static_cast<int64_t>(field.varint);
    } else if (field.number == onnx::ModelProto::kOpsetImportFieldNumber) {
      ABSL_ASSIGN_OR_RETURN(const std::string bytes, ReadString(window, field, 65536));
      if (!parts->opsets.emplace_back().ParseFromString(bytes)) {
        return InvalidArgument("not a model: malformed opset_import");
      }
    } else if (field.number == onnx::ModelProto::kFunctionsFieldNumber) {
      ABSL_ASSIGN_OR_RETURN(const std::string bytes, ReadString(window, field, kLargestFunction));
      if (!parts->functions.emplace_back().ParseFromString(bytes))
        return InvalidArgument("not a model: malformed function");
      parts->functions.back().DiscardUnknownFields();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& name) {
  if (IsUtf8(name)) return absl::OkStatus();
  return InvalidArgument("not a model: the name '", Utf8Text(name), "' is not UTF-8");
}

// Checks everything that has a name in a part of a file: clients are told of it.
absl::Status CheckNames(const google::protobuf::Message& part) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *part.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(part, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_name = field->type() == FieldDescriptor::TYPE_STRING;
    if (!is_name && field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      ABSL_RETURN_IF_ERROR(is_name ? CheckName(reflection.GetString(part, field))
                                   : CheckNames(reflection.GetMessage(part, field)));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(part, field); ++i) {
      ABSL_RETURN_IF_ERROR(is_name ? CheckName(reflection.GetRepeatedString(part, field, i))
                                   : CheckNames(reflection.GetRepeatedMessage(part, field, i)));
    }
  }
  return absl::OkStatus();
}

// Files of IR versions before 3 name no opset: there was one. Others name those of their nodes.
absl::StatusOr<Opsets> ReadOpsets(const std::vector<onnx::OperatorSetIdProto>& entries,
                                  int64_t ir_version, Problems* problems) {
  if (entries.empty() && (ir_version == 1 || ir_version == 2)) return Opsets{{"", 1}};
  if (entries.empty()) return InvalidArgument("not a model: no opset_import");
  int64_t opset = 0;
  Opsets opsets;
  for (const onnx::OperatorSetIdProto& entry : entries) {
    opsets[IsDefaultDomain(entry.domain()) ? "" : entry.domain()] = entry.version();
    if (!IsDefaultDomain(entry.domain())) continue;
    if (opset != 0 && entry.version() != opset)
      return InvalidArgument("two opsets of the default domain");
    opset = entry.version();
  }
  if (opsets.count("") == 0) return opsets;  // its nodes are all of other domains
  if (opset < kOldestOpset || opset > kNewestOpset) {
    problems->Add(Unimplemented("opset ", opset, " of domain 'ai.onnx'; supported are ",
                                kOldestOpset, " to ", kNewestOpset,
                                "; export the model again with one of these"));
  }
  return opsets;
}

}  // namespace

absl::StatusOr<OnnxFile> ReadOnnxFile(const ByteSource& source, const std::string& model_path) {
  if (source.size() == 0) return InvalidArgument("not a model: an empty file");
  Parts parts;
  ByteWindow window(&source);
  TensorReader tensors(model_path);
  ABSL_RETURN_IF_ERROR(ReadModel(&window, &tensors, &parts));
  ABSL_RETURN_IF_ERROR(source.CheckUnchanged());
  ABSL_RETURN_IF_ERROR(tensors.CheckUnchanged());
  if (!parts.has_graph) return InvalidArgument("not a model: no graph");

  OnnxFile contents;
  contents.problems = std::move(parts.problems);
  contents.ir_version = parts.ir_version;
  ABSL_ASSIGN_OR_RETURN(contents.opsets,
                        ReadOpsets(parts.opsets, parts.ir_version, &contents.problems));
  for (const onnx::FunctionProto& function : parts.functions)
    ABSL_RETURN_IF_ERROR(CheckNames(function));
  contents.functions = std::move(parts.functions);
  contents.graph = std::make_unique<onnx::GraphProto>();
  if (!contents.graph->ParseFromString(parts.skeleton)) {
    return InvalidArgument("not a model: malformed graph");
  }
  contents.graph->DiscardUnknownFields();
  ABSL_RETURN_IF_ERROR(CheckNames(*contents.graph));
  contents.initializers = std::move(parts.initializers);
  contents.external = tensors.external();
  return contents;
}

}  // namespace tilewire::reader
