// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/ops/op_table.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

constexpr OpRow kOps[] = {
    // name, inputs, attributes, folds, lower
    {"Abs", 1, 1, "", false, LowerAbs},
    {"Add", 2, 2, "axis broadcast", true, LowerAdd},
    {"AveragePool", 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides", false,
     LowerAveragePool},
    {"BatchNormalization", 5, 5, "epsilon is_test momentum spatial training_mode", false,
     LowerBatchNormalization},
    {"Cast", 1, 1, "to", true, LowerCast},
    {"Clip", 1, 3, "max min", false, LowerClip},
    {"Concat", 1, INT_MAX, "axis", true, LowerConcat},
    {"Constant", 0, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings",
     true, LowerConstant},
    {"ConstantOfShape", 1, 1, "value", true, LowerConstantOfShape},
    {"Conv", 2, 3, "auto_pad dilations group kernel_shape pads strides", false, LowerConv},
    {"DepthToSpace", 1, 1, "blocksize mode", false, LowerDepthToSpace},
    {"Div", 2, 2, "axis broadcast", true, LowerDiv},
    {"Dropout", 1, 3, "is_test ratio seed", true, LowerDropout},
    {"Elu", 1, 1, "alpha", false, LowerElu},
    {"Exp", 1, 1, "", false, LowerExp},
    {"Expand", 2, 2, "", true, LowerExpand},
    {"Flatten", 1, 1, "axis", true, LowerFlatten},
    {"Gather", 2, 2, "axis", true, LowerGather},
    {"Gemm", 2, 3, "alpha beta broadcast transA transB", false, LowerGemm},
    {"GlobalAveragePool", 1, 1, "", false, LowerGlobalAveragePool},
    {"GlobalMaxPool", 1, 1, "", false, LowerGlobalMaxPool},
    {"HardSigmoid", 1, 1, "alpha beta", false, LowerHardSigmoid},
    {"HardSwish", 1, 1, "", false, LowerHardSwish},
    {"Identity", 1, 1, "", true, LowerIdentity},
    {"LeakyRelu", 1, 1, "alpha", false, LowerLeakyRelu},
    {"MatMul", 2, 2, "", false, LowerMatMul},
    {"MaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", false,
     LowerMaxPool},
    {"Mul", 2, 2, "axis broadcast", true, LowerMul},
    {"Pad", 1, 3, "mode pads value", true, LowerPad},
    {"Range", 3, 3, "", true, LowerRange},
    {"ReduceMean", 1, 1, "axes keepdims", false, LowerReduceMean},
    {"Relu", 1, 1, "", false, LowerRelu},
    {"Reshape", 2, 2, "allowzero", true, LowerReshape},
    {"Shape", 1, 1, "end start", true, LowerShape},
    {"Sigmoid", 1, 1, "", false, LowerSigmoid},
    {"Size", 1, 1, "", true, LowerSize},
    {"Slice", 1, 5, "axes ends starts", true, LowerSlice},
    {"Softmax", 1, 1, "axis", false, LowerSoftmax},
    {"Softplus", 1, 1, "", false, LowerSoftplus},
    {"SpaceToDepth", 1, 1, "blocksize", false, LowerSpaceToDepth},
    {"Split", 1, 2, "axis split", true, LowerSplit},
    {"Sqrt", 1, 1, "", false, LowerSqrt},
    {"Squeeze", 1, 2, "axes", true, LowerSqueeze},
    {"Sub", 2, 2, "axis broadcast", true, LowerSub},
    {"Sum", 1, INT_MAX, "", false, LowerSum},
    {"Tanh", 1, 1, "", false, LowerTanh},
    {"Tile", 2, 2, "", true, LowerTile},
    {"Transpose", 1, 1, "perm", true, LowerTranspose},
    {"Unsqueeze", 1, 2, "axes", true, LowerUnsqueeze},
};

}  // namespace

absl::Span<const OpRow> OpTable() { return kOps; }

const OpRow* FindOp(const Node& node) {
  for (const OpRow& row : kOps) {
    if (row.name == node.op()) return &row;
  }
  return nullptr;
}

absl::Status CheckSupported(const Node& node) {
  const std::string& domain = node.proto().domain();
  const OpRow* row = domain.empty() || domain == "ai.onnx" ? FindOp(node) : nullptr;
  if (row == nullptr) {
    return node.Unimplemented(absl::StrCat("operator of domain '",
                                           domain.empty() ? "ai.onnx" : domain.substr(0, 200),
                                           "' is not supported"));
  }
  const int inputs = node.proto().input_size();
  if (inputs < row->min_inputs || inputs > row->max_inputs)
    return node.Invalid(absl::StrCat(inputs, " inputs"));
  for (int i = 0; i < row->min_inputs; ++i) {
    if (node.proto().input(i).empty())
      return node.Invalid(absl::StrCat("input ", i, " is missing"));
  }
  if (node.proto().output_size() == 0 || node.proto().output(0).empty())
    return node.Invalid("has no output");
  return node.CheckAttributes(row->attributes);
}

absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return node.Invalid(absl::StrCat("axis ", axis, " is outside rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace tilewire::graph
