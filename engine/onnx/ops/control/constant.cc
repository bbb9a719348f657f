// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/tensor_reader.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// The tensor of an attribute, sparse or not.
template <typename TensorProto>
absl::StatusOr<ConstantPtr> ReadAttribute(const NodeContext& context, absl::string_view name,
                                          const TensorProto* tensor) {
  if (tensor == nullptr) return context.node.Invalid("attribute '", name, "' is missing");
  const absl::StatusOr<ConstantPtr> constant = ReadTensor(*tensor);
  if (!constant.ok()) {
    return absl::Status(constant.status().code(),
                        absl::StrCat(context.node.Describe(), ": ", constant.status().message()));
  }
  return network::Reshaped(**constant, context.output_name(), (*constant)->dims);
}

}  // namespace

absl::StatusOr<ConstantPtr> TensorAttribute(const NodeContext& context, absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(const onnx::TensorProto* tensor, context.node.Tensor(name));
  return ReadAttribute(context, name, tensor);
}

namespace {

absl::Status BuildConstant(NodeContext& context) {
  const Node& node = context.node;
  if (node.proto().attribute_size() != 1) return node.Invalid("needs exactly one value");
  if (node.HasAttribute("value")) {
    ABSL_ASSIGN_OR_RETURN(ConstantPtr constant, TensorAttribute(context, "value"));
    return context.SetOutput(std::move(constant));
  }
  if (node.HasAttribute("sparse_value")) {
    ABSL_ASSIGN_OR_RETURN(const onnx::SparseTensorProto* tensor, node.SparseTensor("sparse_value"));
    ABSL_ASSIGN_OR_RETURN(ConstantPtr constant, ReadAttribute(context, "sparse_value", tensor));
    return context.SetOutput(std::move(constant));
  }
  if (node.HasAttribute("value_int")) {
    ABSL_ASSIGN_OR_RETURN(const int64_t value, node.Int("value_int", 0));
    return context.SetOutput(MakeInts(context.output_name(), {}, {value}));
  }
  if (node.HasAttribute("value_ints")) {
    ABSL_ASSIGN_OR_RETURN(std::vector<int64_t> values, node.Ints("value_ints", {}));
    const int64_t count = static_cast<int64_t>(values.size());
    return context.SetOutput(MakeInts(context.output_name(), {count}, std::move(values)));
  }
  if (node.HasAttribute("value_float")) {
    ABSL_ASSIGN_OR_RETURN(const float value, node.Float("value_float", 0));
    return context.SetOutput(MakeFloats(context.output_name(), {}, {value}));
  }
  if (node.HasAttribute("value_floats")) {
    ABSL_ASSIGN_OR_RETURN(std::vector<float> values, node.Floats("value_floats"));
    const int64_t count = static_cast<int64_t>(values.size());
    return context.SetOutput(MakeFloats(context.output_name(), {count}, std::move(values)));
  }
  return node.Unimplemented("attribute '", node.proto().attribute(0).name(),
                            "'; supported are numbers");
}

ElementType TypeOfValue(const TypedNode& node, int) {
  if (node.node.HasAttribute("value_int") || node.node.HasAttribute("value_ints"))
    return DataType::kS64;
  return node.tensor(node.node.HasAttribute("sparse_value") ? "sparse_value" : "value");
}

}  // namespace

TILEWIRE_OPERATORS(Constant) = {
    {"Constant", 1, 0, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string "
     "value_strings",
     BuildConstant, Folds::kInMemory, TypeOfValue},
};

}  // namespace tilewire::reader
