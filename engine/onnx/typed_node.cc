// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/typed_node.h"

#include <optional>
#include <string>

namespace tilewire::reader {
namespace {

// The type that a tensor of the file is read as.
ElementType TypeInFile(int onnx_type) { return ElementTypeOf(onnx_type).value_or(ElementType()); }

}  // namespace

ElementType TypedNode::body_output(absl::string_view attribute, size_t i) const {
  const auto body = node.bodies.find(std::string(attribute));
  if (body == node.bodies.end() || i >= body->second->outputs.size()) return kAbsent;
  const TensorId id = body->second->outputs[i];
  return id == kNoTensor ? kAbsent : types_[id];
}

ElementType TypedNode::tensor(absl::string_view attribute) const {
  if (const auto dense = node.Tensor(attribute); dense.ok() && *dense != nullptr)
    return TypeInFile((*dense)->data_type());
  const auto sparse = node.SparseTensor(attribute);
  if (!sparse.ok() || *sparse == nullptr) return kAbsent;
  return TypeInFile((*sparse)->values().data_type());
}

ElementType TypedNode::named(absl::string_view attribute, ElementType absent) const {
  const int64_t number = node.Int(attribute, 0).value_or(0);
  return number == 0 ? absent : ElementTypeOf(number).value_or(kAbsent);
}

}  // namespace tilewire::reader
