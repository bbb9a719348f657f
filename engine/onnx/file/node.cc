// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/node.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

using onnx::AttributeProto;

// Truncates a name from the file, so that a message stays short.
constexpr size_t kLongestNameInMessage = 200;

// Files older than IR version 4 may leave the type out; the field that is set tells it.
AttributeProto::AttributeType TypeOf(const AttributeProto& attribute) {
  if (attribute.has_type()) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

}  // namespace

std::string Node::name() const {
  return proto_->name().empty() ? absl::StrCat(scope_, "#", index_)
                                : absl::StrCat(scope_, proto_->name());
}

std::string Node::Describe() const {
  const std::string& domain = proto_->domain();
  return absl::StrCat("node '", name().substr(0, kLongestNameInMessage), "' (",
                      op().substr(0, kLongestNameInMessage), " of ",
                      domain.empty() ? "ai.onnx" : domain.substr(0, kLongestNameInMessage),
                      opset_ == 0 ? ", not imported" : absl::StrCat(", opset ", opset_), ")");
}

const AttributeProto* Node::Find(absl::string_view name) const {
  for (const AttributeProto& attribute : proto_->attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<const AttributeProto*> Node::FindTyped(absl::string_view name,
                                                      AttributeProto::AttributeType type) const {
  const AttributeProto* attribute = Find(name);
  if (attribute == nullptr || TypeOf(*attribute) == type) return attribute;
  return Invalid("attribute '", name, "' has type ",
                 AttributeProto::AttributeType_Name(TypeOf(*attribute)), ", expected ",
                 AttributeProto::AttributeType_Name(type));
}

absl::StatusOr<int64_t> Node::Int(absl::string_view name, int64_t absent) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::INT));
  return attribute == nullptr ? absent : attribute->i();
}

absl::StatusOr<float> Node::Float(absl::string_view name, float absent) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::FLOAT));
  return attribute == nullptr ? absent : attribute->f();
}

absl::StatusOr<std::string> Node::String(absl::string_view name, absl::string_view absent) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::STRING));
  return attribute == nullptr ? std::string(absent) : attribute->s();
}

absl::StatusOr<std::string> Node::OneOf(absl::string_view name, absl::string_view absent,
                                        absl::Span<const absl::string_view> known) const {
  ABSL_ASSIGN_OR_RETURN(std::string given, String(name, absent));
  if (std::find(known.begin(), known.end(), given) != known.end()) return given;
  return Invalid(name, " '", given.substr(0, kLongestNameInMessage), "'; known are ",
                 absl::StrJoin(known, ", "));
}

absl::StatusOr<std::vector<int64_t>> Node::Ints(absl::string_view name,
                                                std::vector<int64_t> absent) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::INTS));
  if (attribute == nullptr) return absent;
  return std::vector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

absl::StatusOr<std::vector<float>> Node::Floats(absl::string_view name) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::FLOATS));
  if (attribute == nullptr) return std::vector<float>();
  return std::vector<float>(attribute->floats().begin(), attribute->floats().end());
}

absl::StatusOr<std::vector<std::string>> Node::Strings(absl::string_view name) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::STRINGS));
  if (attribute == nullptr) return std::vector<std::string>();
  return std::vector<std::string>(attribute->strings().begin(), attribute->strings().end());
}

absl::StatusOr<const onnx::TensorProto*> Node::Tensor(absl::string_view name) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute, FindTyped(name, AttributeProto::TENSOR));
  return attribute == nullptr ? nullptr : &attribute->t();
}

absl::StatusOr<const onnx::SparseTensorProto*> Node::SparseTensor(absl::string_view name) const {
  ABSL_ASSIGN_OR_RETURN(const AttributeProto* attribute,
                        FindTyped(name, AttributeProto::SPARSE_TENSOR));
  return attribute == nullptr ? nullptr : &attribute->sparse_tensor();
}

absl::Status Node::CheckAttributes(absl::string_view known) const {
  const absl::flat_hash_set<absl::string_view> names = absl::StrSplit(known, ' ');
  absl::flat_hash_set<absl::string_view> seen;
  for (const AttributeProto& attribute : proto_->attribute()) {
    const absl::string_view shown =
        absl::string_view(attribute.name()).substr(0, kLongestNameInMessage);
    if (!names.contains(attribute.name())) return Invalid("unknown attribute '", shown, "'");
    if (!seen.insert(attribute.name()).second) return Invalid("attribute '", shown, "' twice");
  }
  return absl::OkStatus();
}

}  // namespace tilewire::reader
