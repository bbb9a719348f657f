// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/model_check.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/onnx_model.h"
#include "engine/onnx/problems.h"
#include "engine/onnx/training_leftovers.h"

namespace tilewire::reader {
namespace {

// The name that the protocol has for a type.
std::string TypeText(int64_t type) {
  static constexpr struct {
    onnx::TensorProto::DataType onnx;
    absl::string_view name;
  } kOthers[] = {{onnx::TensorProto::FLOAT, "FP32"},
                 {onnx::TensorProto::DOUBLE, "FP64"},
                 {onnx::TensorProto::FLOAT16, "FP16"},
                 {onnx::TensorProto::BFLOAT16, "BF16"}};
  for (const auto& one : kOthers) {
    if (one.onnx == type) return std::string(one.name);
  }
  return ElementTypeText(type);
}

CheckedTensor AsDeclared(const onnx::ValueInfoProto& declared) {
  CheckedTensor tensor;
  tensor.name = declared.name();
  if (!declared.type().has_tensor_type()) return {declared.name(), "not a tensor", false, {}};
  const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
  tensor.type = TypeText(type.elem_type());
  tensor.has_shape = type.has_shape();
  for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
    tensor.dims.push_back(dim.dim_value() > 0        ? absl::StrCat(dim.dim_value())
                          : !dim.dim_param().empty() ? dim.dim_param()
                                                     : "?");
  }
  return tensor;
}

// Sizes that reading the model found, where the file left them open.
void AddKnown(const TensorSpec& spec, CheckedTensor* tensor) {
  if (spec.any_rank) return;
  if (tensor->dims.size() != spec.dims.size()) tensor->dims.assign(spec.dims.size(), "?");
  tensor->has_shape = true;
  for (size_t i = 0; i < spec.dims.size(); ++i) {
    if (spec.dims[i] >= 0) tensor->dims[i] = absl::StrCat(spec.dims[i]);
  }
}

void AddDeclared(const OnnxFile& file, ModelCheck* check) {
  const auto opset = file.opsets.find("");
  if (opset != file.opsets.end()) check->opset = opset->second;
  check->nodes = file.graph->node_size();
  std::set<std::string> constants;  // which IR versions before 4 declare as inputs, too
  for (const ConstantPtr& constant : file.initializers) constants.insert(constant->name);
  for (const onnx::ValueInfoProto& input : file.graph->input()) {
    if (constants.count(input.name()) == 0) check->inputs.push_back(AsDeclared(input));
  }
  for (const onnx::ValueInfoProto& output : file.graph->output())
    check->outputs.push_back(AsDeclared(output));
  check->leftovers = TrainingLeftovers(file);
}

}  // namespace

ModelCheck CheckModel(const std::string& path) {
  ModelCheck check;
  if (const auto source = OpenFile(path); source.ok()) {
    if (const auto file = ReadOnnxFile(**source, path); file.ok()) AddDeclared(*file, &check);
  }
  const auto model = OnnxModel::Open(path);
  check.status = model.status();
  if (!model.ok()) {
    check.lacks = ProblemsOf(check.status);
    return check;
  }
  check.weights_bytes = (*model)->weights_bytes();
  check.in_stages = (*model)->has_cuts();
  check.unfit = (*model)->unfit();
  for (size_t i = 0; i < check.outputs.size(); ++i)
    AddKnown((*model)->outputs()[i], &check.outputs[i]);
  return check;
}

}  // namespace tilewire::reader
