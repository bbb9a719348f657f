// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/model_splices.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/narrow_floats.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/file/tensor_record.h"
#include "engine/onnx/file/wire_cursor.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kLongestTextInNode = 65536;
constexpr int kMetadataField = 14;  // ModelProto.metadata_props, of messages {key = 1, value = 2}
constexpr int kKeyField = 1, kValueField = 2;

std::string VarintOf(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string TagOf(int number, WireType type) {
  return VarintOf(static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(type));
}

std::string FieldOf(int number, absl::string_view payload) {
  return absl::StrCat(TagOf(number, WireType::kLengthDelimited), VarintOf(payload.size()), payload);
}

// The field of an initializer, as far as its `count` elements.
std::string InitializerBefore(const network::Constant& constant, size_t count) {
  using onnx::TensorProto;
  std::string tensor;
  for (const int64_t dim : constant.dims)
    tensor += TagOf(TensorProto::kDimsFieldNumber, WireType::kVarint) + VarintOf(dim);
  const int type = constant.declared == DataType::kF16    ? TensorProto::FLOAT16
                   : constant.declared == DataType::kBf16 ? TensorProto::BFLOAT16
                                                          : TensorProto::FLOAT;
  tensor += TagOf(TensorProto::kDataTypeFieldNumber, WireType::kVarint) + VarintOf(type);
  tensor += FieldOf(TensorProto::kNameFieldNumber, constant.name);
  const size_t bytes = count * SizeOf(constant.declared);
  tensor += TagOf(TensorProto::kRawDataFieldNumber, WireType::kLengthDelimited) + VarintOf(bytes);
  return absl::StrCat(TagOf(onnx::GraphProto::kInitializerFieldNumber, WireType::kLengthDelimited),
                      VarintOf(tensor.size() + bytes), tensor);
}

// The type that a tensor's numbers are written in; nullopt: none that is written.
std::optional<DataType> WrittenType(const TensorRecord& record) {
  const std::optional<StoredType> stored = StoredType::Of(record.type);
  if (!stored || stored->bits() != 8 * SizeOf(stored->held())) return std::nullopt;
  const DataType type = stored->held();
  if (IsComputedInF32(type) || type == DataType::kF64) return type;
  return std::nullopt;
}

// kInvalidArgument: the tensor has another number of elements, or its type has no finite number
// that is near a finite element.
absl::Status CheckFits(const NewElements& given, int64_t count, DataType type) {
  if (count != static_cast<int64_t>(given.elements.size())) {
    return InvalidArgument("tensor '", given.name.substr(0, 200), "' has ", count,
                           " elements, not ", given.elements.size());
  }
  for (size_t i = 0; i < given.elements.size(); ++i) {
    if (std::isfinite(given.elements[i]) && !std::isfinite(RoundTo(type, given.elements[i]))) {
      return InvalidArgument("tensor '", given.name, "': element ", i, " is ", given.elements[i],
                             ", which ", DataTypeName(type), " does not hold");
    }
  }
  return absl::OkStatus();
}

// Walks through the model's file once. A function that visits a message returns by how many bytes
// its payload grows.
class SpliceSearch {
 public:
  explicit SpliceSearch(const ModelFiles& files) : files_(files), window_(files.model.get()) {}

  absl::Status Add(const NewElements& given) {
    if (wanted_.try_emplace(given.name, &given).second) return absl::OkStatus();
    return InvalidArgument("tensor '", given.name, "' is given twice");
  }

  absl::StatusOr<Splices> Run(const Metadata& added) {
    WireCursor cursor(&window_, 0, files_.model->size());
    while (!cursor.done()) {
      ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
      if (field.number == onnx::ModelProto::kGraphFieldNumber) {
        ABSL_ASSIGN_OR_RETURN(const int64_t growth, VisitGraph(field));
        Enclose(field, growth);
      } else if (field.number == kMetadataField) {
        ABSL_RETURN_IF_ERROR(DropReplaced(field, added));
      }
    }
    if (!wanted_.empty()) {
      const std::string& name = wanted_.begin()->first;
      return InvalidArgument("the model has no initializer '", name.substr(0, 200), "'");
    }
    Splice& metadata = splices_.model.emplace_back();
    metadata.begin = metadata.end = files_.model->size();
    for (const auto& [key, value] : added) {
      absl::StrAppend(&metadata.bytes, FieldOf(kMetadataField, FieldOf(kKeyField, key) +
                                                                   FieldOf(kValueField, value)));
    }
    ABSL_RETURN_IF_ERROR(Sort(&splices_.model));
    for (auto& [location, splices] : splices_.external) ABSL_RETURN_IF_ERROR(Sort(&splices));
    return std::move(splices_);
  }

 private:
  static absl::Status Sort(std::vector<Splice>* splices) {
    absl::c_sort(*splices, [](const Splice& a, const Splice& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < splices->size(); ++i) {
      if ((*splices)[i].begin < (*splices)[i - 1].end)
        return InvalidArgument("two tensors have the same external data");
    }
    return absl::OkStatus();
  }

  // A message whose payload grows gets another length. Returns by how many bytes the field grows.
  int64_t Enclose(const WireField& field, int64_t growth) {
    if (growth == 0) return 0;
    Splice header{field.begin, field.offset};
    header.bytes = absl::StrCat(TagOf(field.number, WireType::kLengthDelimited),
                                VarintOf(static_cast<uint64_t>(field.length + growth)));
    const auto size = static_cast<int64_t>(header.bytes.size());
    splices_.model.push_back(std::move(header));
    return growth + size - (field.offset - field.begin);
  }

  absl::StatusOr<int64_t> VisitGraph(const WireField& graph) {
    int64_t growth = 0;
    WireCursor cursor(&window_, graph.offset, graph.offset + graph.length);
    while (!cursor.done()) {
      ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
      const bool is_node = field.number == onnx::GraphProto::kNodeFieldNumber;
      if (!is_node && field.number != onnx::GraphProto::kInitializerFieldNumber) continue;
      ABSL_ASSIGN_OR_RETURN(const int64_t grown,
                            is_node ? VisitNode(field) : VisitInitializer(field));
      growth += grown;
    }
    return growth;
  }

  absl::StatusOr<int64_t> VisitInitializer(const WireField& field) {
    ABSL_ASSIGN_OR_RETURN(TensorRecord record,
                          ReadTensorRecord(&window_, field.offset, field.offset + field.length));
    const std::string name = record.name;
    ABSL_ASSIGN_OR_RETURN(const int64_t growth, Replace(std::move(record), name));
    return Enclose(field, growth);
  }

  // The first field `number` of a message as text; empty if there is none.
  absl::StatusOr<std::string> TextIn(const WireField& message, int number) {
    WireCursor cursor(&window_, message.offset, message.offset + message.length);
    while (!cursor.done()) {
      ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
      if (field.number == number) return ReadString(&window_, field, kLongestTextInNode);
    }
    return std::string();
  }

  absl::StatusOr<int64_t> VisitNode(const WireField& node) {
    ABSL_ASSIGN_OR_RETURN(const std::string op, TextIn(node, onnx::NodeProto::kOpTypeFieldNumber));
    if (op != "Constant" && op != "Identity") return 0;
    ABSL_ASSIGN_OR_RETURN(const std::string output,
                          TextIn(node, onnx::NodeProto::kOutputFieldNumber));
    if (op == "Identity") return ReplaceIdentity(node, output);
    if (!wanted_.contains(output)) return 0;
    int64_t growth = 0;
    WireCursor cursor(&window_, node.offset, node.offset + node.length);
    while (!cursor.done()) {
      ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
      if (field.number != onnx::NodeProto::kAttributeFieldNumber) continue;
      ABSL_ASSIGN_OR_RETURN(const int64_t inner, VisitAttribute(field, output));
      growth += Enclose(field, inner);
    }
    return Enclose(node, growth);
  }

  // Puts an initializer in the place of a node that was taken apart: with its own elements where
  // none are given, as what it was a copy of may have others now.
  absl::StatusOr<int64_t> ReplaceIdentity(const WireField& node, const std::string& output) {
    const auto one = absl::c_find_if(
        files_.taken_apart, [&output](const auto& constant) { return constant->name == output; });
    if (one == files_.taken_apart.end()) return 0;
    const network::Constant& constant = **one;
    absl::Span<const float> elements = constant.floats;
    if (const auto found = wanted_.find(output); found != wanted_.end()) {
      const NewElements& given = *found->second;
      wanted_.erase(found);
      const auto count = static_cast<int64_t>(elements.size());
      ABSL_RETURN_IF_ERROR(CheckFits(given, count, constant.declared));
      elements = given.elements;
    }
    Splice splice{node.begin, node.offset + node.length};
    splice.bytes = InitializerBefore(constant, elements.size());
    splice.numbers = elements;
    splice.type = constant.declared;
    const auto size =
        static_cast<int64_t>(splice.bytes.size() + elements.size() * SizeOf(constant.declared));
    const int64_t growth = size - (splice.end - splice.begin);
    splices_.model.push_back(std::move(splice));
    return growth;
  }

  absl::StatusOr<int64_t> VisitAttribute(const WireField& attribute, const std::string& name) {
    ABSL_ASSIGN_OR_RETURN(const std::string which,
                          TextIn(attribute, onnx::AttributeProto::kNameFieldNumber));
    if (which != "value") return 0;
    int64_t growth = 0;
    WireCursor cursor(&window_, attribute.offset, attribute.offset + attribute.length);
    while (!cursor.done()) {
      ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
      if (field.number != onnx::AttributeProto::kTFieldNumber) continue;
      ABSL_ASSIGN_OR_RETURN(const TensorRecord record,
                            ReadTensorRecord(&window_, field.offset, field.offset + field.length));
      ABSL_ASSIGN_OR_RETURN(const int64_t inner, Replace(record, name));
      growth += Enclose(field, inner);
    }
    return growth;
  }

  absl::StatusOr<int64_t> Replace(TensorRecord record, const std::string& name) {
    const auto found = wanted_.find(name);
    if (found == wanted_.end()) return 0;
    const NewElements& given = *found->second;
    wanted_.erase(found);
    const std::optional<DataType> type = WrittenType(record);
    if (!type) {
      return InvalidArgument("tensor '", name.substr(0, 200), "' is of ",
                             ElementTypeText(record.type),
                             "; what is written is FLOAT, DOUBLE, FLOAT16 and BFLOAT16");
    }
    ABSL_ASSIGN_OR_RETURN(const int64_t count, CheckedCount(record));
    ABSL_RETURN_IF_ERROR(CheckFits(given, count, *type));
    std::vector<Splice>* splices = &splices_.model;
    if (record.external) {
      const std::string& location = record.external_entries["location"];
      const auto file = files_.external.find(location);
      if (file == files_.external.end())
        return Internal("external data '", location, "' is not open");
      ABSL_RETURN_IF_ERROR(LocateExternal(count * SizeOf(*type), *file->second, &record));
      splices = &splices_.external[location];
    }
    ABSL_RETURN_IF_ERROR(CheckContents(record, count, *StoredType::Of(record.type)));
    if (!record.has_raw && !record.int_fields.empty()) return ReplaceInts(record, given, *type);
    if (record.has_raw) record.fixed = {record.raw};
    const int64_t size = SizeOf(*type);
    int64_t first = 0;
    for (const ElementRun& run : record.fixed) {
      const int64_t elements = run.count * run.size / size;
      ABSL_RETURN_IF_ERROR(
          ReplaceRun(run, given.elements.subspan(first, elements), *type, splices));
      first += elements;
    }
    return 0;
  }

  absl::Status ReplaceRun(const ElementRun& run, absl::Span<const float> numbers, DataType type,
                          std::vector<Splice>* splices) {
    if (run.stride == run.size) {
      splices->push_back({run.offset, run.offset + run.count * run.size, "", numbers, type});
      return absl::OkStatus();
    }
    // Each element has a tag before it.
    Splice spaced{run.offset, run.offset + (run.count - 1) * run.stride + run.size};
    spaced.bytes.resize(spaced.end - spaced.begin);
    ABSL_RETURN_IF_ERROR(files_.model->Read(spaced.begin, static_cast<int64_t>(spaced.bytes.size()),
                                            spaced.bytes.data()));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double wide = numbers[i];
      const void* from = type == DataType::kF64 ? static_cast<const void*>(&wide) : &numbers[i];
      memcpy(spaced.bytes.data() + i * run.stride, from, run.size);
    }
    splices->push_back(std::move(spaced));
    return absl::OkStatus();
  }

  // Bits of 16 as variable-length integers.
  absl::StatusOr<int64_t> ReplaceInts(const TensorRecord& record, const NewElements& given,
                                      DataType type) {
    int64_t growth = 0;
    size_t next = 0;
    for (const WireField& field : record.int_fields) {
      std::vector<int64_t> old;
      ABSL_RETURN_IF_ERROR(AppendVarints(&window_, field, &old));
      std::string payload;
      for (size_t i = 0; i < old.size(); ++i)
        payload += VarintOf(NarrowAs(type, given.elements[next++]));
      Splice splice{field.begin, field.offset + field.length};
      splice.bytes = field.type == WireType::kVarint
                         ? TagOf(field.number, WireType::kVarint) + payload
                         : FieldOf(field.number, payload);
      growth += static_cast<int64_t>(splice.bytes.size()) - (splice.end - splice.begin);
      splices_.model.push_back(std::move(splice));
    }
    return growth;
  }

  // An entry whose key is added again goes.
  absl::Status DropReplaced(const WireField& entry, const Metadata& added) {
    ABSL_ASSIGN_OR_RETURN(const std::string key, TextIn(entry, kKeyField));
    const auto has_key = [&key](const auto& pair) { return pair.first == key; };
    if (absl::c_any_of(added, has_key))
      splices_.model.push_back({entry.begin, entry.offset + entry.length});
    return absl::OkStatus();
  }

  const ModelFiles& files_;
  ByteWindow window_;
  absl::flat_hash_map<std::string, const NewElements*> wanted_;  // those not found yet
  Splices splices_;
};

}  // namespace

absl::StatusOr<Splices> FindSplices(const ModelFiles& files, absl::Span<const NewElements> changed,
                                    const Metadata& added) {
  SpliceSearch search(files);
  for (const NewElements& given : changed) ABSL_RETURN_IF_ERROR(search.Add(given));
  return search.Run(added);
}

}  // namespace tilewire::reader
