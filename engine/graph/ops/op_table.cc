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
    {"Acos", 1, 1, "", true, LowerAcos},
    {"Acosh", 1, 1, "", true, LowerAcosh},
    {"Add", 2, 2, "axis broadcast", true, LowerAdd},
    {"And", 2, 2, "axis broadcast", true, LowerAnd},
    {"ArgMax", 1, 1, "axis keepdims select_last_index", false, LowerArgMax},
    {"ArgMin", 1, 1, "axis keepdims select_last_index", false, LowerArgMin},
    {"Asin", 1, 1, "", true, LowerAsin},
    {"Asinh", 1, 1, "", true, LowerAsinh},
    {"Atan", 1, 1, "", true, LowerAtan},
    {"Atanh", 1, 1, "", true, LowerAtanh},
    {"AveragePool", 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides", false,
     LowerAveragePool},
    {"BatchNormalization", 5, 5, "epsilon is_test momentum spatial training_mode", false,
     LowerBatchNormalization},
    {"Cast", 1, 1, "to", true, LowerCast},
    {"Ceil", 1, 1, "", true, LowerCeil},
    {"Celu", 1, 1, "alpha", true, LowerCelu},
    {"Clip", 1, 3, "max min", true, LowerClip},
    {"Concat", 1, INT_MAX, "axis", true, LowerConcat},
    {"Constant", 0, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings",
     true, LowerConstant},
    {"ConstantOfShape", 1, 1, "value", true, LowerConstantOfShape},
    {"Conv", 2, 3, "auto_pad dilations group kernel_shape pads strides", false, LowerConv},
    {"ConvInteger", 2, 4, "auto_pad dilations group kernel_shape pads strides", false,
     LowerConvInteger},
    {"ConvTranspose", 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides", false,
     LowerConvTranspose},
    {"Cos", 1, 1, "", true, LowerCos},
    {"Cosh", 1, 1, "", true, LowerCosh},
    {"DepthToSpace", 1, 1, "blocksize mode", false, LowerDepthToSpace},
    {"DequantizeLinear", 2, 3, "axis", true, LowerDequantizeLinear, /*reads_in_place=*/true},
    {"Div", 2, 2, "axis broadcast", true, LowerDiv},
    {"Dropout", 1, 3, "is_test ratio seed", true, LowerDropout},
    {"DynamicQuantizeLinear", 1, 1, "", false, LowerDynamicQuantizeLinear},
    {"Elu", 1, 1, "alpha", false, LowerElu},
    {"Equal", 2, 2, "axis broadcast", true, LowerEqual},
    {"Erf", 1, 1, "", true, LowerErf},
    {"Exp", 1, 1, "", false, LowerExp},
    {"Expand", 2, 2, "", true, LowerExpand},
    {"Flatten", 1, 1, "axis", true, LowerFlatten},
    {"Floor", 1, 1, "", true, LowerFloor},
    {"Gather", 2, 2, "axis", true, LowerGather},
    {"Gemm", 2, 3, "alpha beta broadcast transA transB", false, LowerGemm},
    {"GlobalAveragePool", 1, 1, "", false, LowerGlobalAveragePool},
    {"GlobalLpPool", 1, 1, "p", false, LowerGlobalLpPool},
    {"GlobalMaxPool", 1, 1, "", false, LowerGlobalMaxPool},
    {"Greater", 2, 2, "axis broadcast", true, LowerGreater},
    {"GreaterOrEqual", 2, 2, "", true, LowerGreaterOrEqual},
    {"HardSigmoid", 1, 1, "alpha beta", false, LowerHardSigmoid},
    {"HardSwish", 1, 1, "", false, LowerHardSwish},
    {"Identity", 1, 1, "", true, LowerIdentity},
    {"InstanceNormalization", 3, 3, "epsilon", false, LowerInstanceNormalization},
    {"IsInf", 1, 1, "detect_negative detect_positive", true, LowerIsInf},
    {"IsNaN", 1, 1, "", true, LowerIsNaN},
    {"LRN", 1, 1, "alpha beta bias size", false, LowerLrn},
    {"LayerNormalization", 2, 3, "axis epsilon stash_type", false, LowerLayerNormalization},
    {"LeakyRelu", 1, 1, "alpha", false, LowerLeakyRelu},
    {"Less", 2, 2, "axis broadcast", true, LowerLess},
    {"LessOrEqual", 2, 2, "", true, LowerLessOrEqual},
    {"Log", 1, 1, "", true, LowerLog},
    {"LogSoftmax", 1, 1, "axis", false, LowerLogSoftmax},
    {"MatMul", 2, 2, "", false, LowerMatMul},
    {"MatMulInteger", 2, 4, "", false, LowerMatMulInteger},
    {"Max", 1, INT_MAX, "", true, LowerMax},
    {"MaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", false,
     LowerMaxPool},
    {"Mean", 1, INT_MAX, "", false, LowerMean},
    {"MeanVarianceNormalization", 1, 1, "axes", false, LowerMeanVarianceNormalization},
    {"Min", 1, INT_MAX, "", true, LowerMin},
    {"Mod", 2, 2, "fmod", true, LowerMod},
    {"Mul", 2, 2, "axis broadcast", true, LowerMul},
    {"Neg", 1, 1, "", true, LowerNeg},
    {"Not", 1, 1, "", true, LowerNot},
    {"Or", 2, 2, "axis broadcast", true, LowerOr},
    {"PRelu", 2, 2, "", true, LowerPRelu},
    {"Pad", 1, 3, "mode pads value", true, LowerPad},
    {"Pow", 2, 2, "axis broadcast", true, LowerPow},
    {"QLinearConv", 8, 9, "auto_pad dilations group kernel_shape pads strides", false,
     LowerQLinearConv},
    {"QLinearMatMul", 8, 8, "", false, LowerQLinearMatMul},
    {"QuantizeLinear", 2, 3, "axis", true, LowerQuantizeLinear, /*reads_in_place=*/true},
    {"Range", 3, 3, "", true, LowerRange},
    {"Reciprocal", 1, 1, "", true, LowerReciprocal},
    {"ReduceL1", 1, 1, "axes keepdims", true, LowerReduceL1},
    {"ReduceL2", 1, 1, "axes keepdims", true, LowerReduceL2},
    {"ReduceLogSum", 1, 1, "axes keepdims", true, LowerReduceLogSum},
    {"ReduceLogSumExp", 1, 1, "axes keepdims", true, LowerReduceLogSumExp},
    {"ReduceMax", 1, 1, "axes keepdims", true, LowerReduceMax},
    {"ReduceMean", 1, 1, "axes keepdims", false, LowerReduceMean},
    {"ReduceMin", 1, 1, "axes keepdims", true, LowerReduceMin},
    {"ReduceProd", 1, 1, "axes keepdims", true, LowerReduceProd},
    {"ReduceSum", 1, 2, "axes keepdims noop_with_empty_axes", true, LowerReduceSum},
    {"ReduceSumSquare", 1, 1, "axes keepdims", true, LowerReduceSumSquare},
    {"Relu", 1, 1, "", false, LowerRelu},
    {"Reshape", 2, 2, "allowzero", true, LowerReshape},
    {"Resize", 1, 4,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode",
     false, LowerResize},
    {"Round", 1, 1, "", true, LowerRound},
    {"Selu", 1, 1, "alpha gamma", true, LowerSelu},
    {"Shape", 1, 1, "end start", true, LowerShape},
    {"Shrink", 1, 1, "bias lambd", true, LowerShrink},
    {"Sigmoid", 1, 1, "", false, LowerSigmoid},
    {"Sign", 1, 1, "", true, LowerSign},
    {"Sin", 1, 1, "", true, LowerSin},
    {"Sinh", 1, 1, "", true, LowerSinh},
    {"Size", 1, 1, "", true, LowerSize},
    {"Slice", 1, 5, "axes ends starts", true, LowerSlice},
    {"Softmax", 1, 1, "axis", false, LowerSoftmax},
    {"Softplus", 1, 1, "", false, LowerSoftplus},
    {"Softsign", 1, 1, "", true, LowerSoftsign},
    {"SpaceToDepth", 1, 1, "blocksize", false, LowerSpaceToDepth},
    {"Split", 1, 2, "axis split", true, LowerSplit},
    {"Sqrt", 1, 1, "", false, LowerSqrt},
    {"Squeeze", 1, 2, "axes", true, LowerSqueeze},
    {"Sub", 2, 2, "axis broadcast", true, LowerSub},
    {"Sum", 1, INT_MAX, "", false, LowerSum},
    {"Tan", 1, 1, "", true, LowerTan},
    {"Tanh", 1, 1, "", false, LowerTanh},
    {"ThresholdedRelu", 1, 1, "alpha", true, LowerThresholdedRelu},
    {"Tile", 2, 2, "", true, LowerTile},
    {"TopK", 1, 2, "axis k largest sorted", false, LowerTopK},
    {"Transpose", 1, 1, "perm", true, LowerTranspose},
    {"Unsqueeze", 1, 2, "axes", true, LowerUnsqueeze},
    {"Upsample", 1, 2, "mode scales", false, LowerResize},
    {"Where", 3, 3, "", true, LowerWhere},
    {"Xor", 2, 2, "axis broadcast", true, LowerXor},
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
    return node.Unimplemented(absl::StrCat(
        "this operator is not supported, only those of ai.onnx in ", "engine/graph/README.md are"));
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

absl::Status CheckCountable(const Node& node, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (size <= kMost) return absl::OkStatus();
  return node.Unimplemented(absl::StrCat("computed indices of ", size,
                                         " elements; they are held in f32, which counts ", kMost));
}

absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return node.Invalid(absl::StrCat("axis ", axis, " is outside rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace tilewire::graph
