// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/ops/op_table.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

constexpr OpRow kOps[] = {
    // name, inputs, attributes, folds, lower
    {"Abs", 1, 1, "", false, BuildAbs},
    {"Acos", 1, 1, "", true, BuildAcos},
    {"Acosh", 1, 1, "", true, BuildAcosh},
    {"Add", 2, 2, "axis broadcast", true, BuildAdd},
    {"And", 2, 2, "axis broadcast", true, BuildAnd},
    {"ArgMax", 1, 1, "axis keepdims select_last_index", false, BuildArgMax},
    {"ArgMin", 1, 1, "axis keepdims select_last_index", false, BuildArgMin},
    {"Asin", 1, 1, "", true, BuildAsin},
    {"Asinh", 1, 1, "", true, BuildAsinh},
    {"Atan", 1, 1, "", true, BuildAtan},
    {"Atanh", 1, 1, "", true, BuildAtanh},
    {"AveragePool", 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides", false,
     BuildAveragePool},
    {"BatchNormalization", 5, 5, "epsilon is_test momentum spatial training_mode", false,
     BuildBatchNormalization},
    {"Cast", 1, 1, "to", true, BuildCast},
    {"Ceil", 1, 1, "", true, BuildCeil},
    {"Celu", 1, 1, "alpha", true, BuildCelu},
    {"Clip", 1, 3, "max min", true, BuildClip},
    {"Concat", 1, INT_MAX, "axis", true, BuildConcat},
    {"Constant", 0, 0,
     "sparse_value value value_float value_floats value_int value_ints value_string value_strings",
     true, BuildConstant},
    {"ConstantOfShape", 1, 1, "value", true, BuildConstantOfShape},
    {"Conv", 2, 3, "auto_pad dilations group kernel_shape pads strides", false, BuildConv},
    {"ConvInteger", 2, 4, "auto_pad dilations group kernel_shape pads strides", false,
     BuildConvInteger},
    {"ConvTranspose", 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides", false,
     BuildConvTranspose},
    {"Cos", 1, 1, "", true, BuildCos},
    {"Cosh", 1, 1, "", true, BuildCosh},
    {"DepthToSpace", 1, 1, "blocksize mode", false, BuildDepthToSpace},
    {"DequantizeLinear", 2, 3, "axis", true, BuildDequantizeLinear, /*reads_in_place=*/true},
    {"Div", 2, 2, "axis broadcast", true, BuildDiv},
    {"Dropout", 1, 3, "is_test ratio seed", true, BuildDropout},
    {"DynamicQuantizeLinear", 1, 1, "", false, BuildDynamicQuantizeLinear},
    {"Elu", 1, 1, "alpha", false, BuildElu},
    {"Equal", 2, 2, "axis broadcast", true, BuildEqual},
    {"Erf", 1, 1, "", true, BuildErf},
    {"Exp", 1, 1, "", false, BuildExp},
    {"Expand", 2, 2, "", true, BuildExpand},
    {"Flatten", 1, 1, "axis", true, BuildFlatten},
    {"Floor", 1, 1, "", true, BuildFloor},
    {"Gather", 2, 2, "axis", true, BuildGather},
    {"Gemm", 2, 3, "alpha beta broadcast transA transB", false, BuildGemm},
    {"GlobalAveragePool", 1, 1, "", false, BuildGlobalAveragePool},
    {"GlobalLpPool", 1, 1, "p", false, BuildGlobalLpPool},
    {"GlobalMaxPool", 1, 1, "", false, BuildGlobalMaxPool},
    {"Greater", 2, 2, "axis broadcast", true, BuildGreater},
    {"GreaterOrEqual", 2, 2, "", true, BuildGreaterOrEqual},
    {"HardSigmoid", 1, 1, "alpha beta", false, BuildHardSigmoid},
    {"HardSwish", 1, 1, "", false, BuildHardSwish},
    {"Identity", 1, 1, "", true, BuildIdentity},
    {"InstanceNormalization", 3, 3, "epsilon", false, BuildInstanceNormalization},
    {"IsInf", 1, 1, "detect_negative detect_positive", true, BuildIsInf},
    {"IsNaN", 1, 1, "", true, BuildIsNaN},
    {"LRN", 1, 1, "alpha beta bias size", false, BuildLrn},
    {"LayerNormalization", 2, 3, "axis epsilon stash_type", false, BuildLayerNormalization},
    {"LeakyRelu", 1, 1, "alpha", false, BuildLeakyRelu},
    {"Less", 2, 2, "axis broadcast", true, BuildLess},
    {"LessOrEqual", 2, 2, "", true, BuildLessOrEqual},
    {"Log", 1, 1, "", true, BuildLog},
    {"LogSoftmax", 1, 1, "axis", false, BuildLogSoftmax},
    {"MatMul", 2, 2, "", false, BuildMatMul},
    {"MatMulInteger", 2, 4, "", false, BuildMatMulInteger},
    {"Max", 1, INT_MAX, "", true, BuildMax},
    {"MaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides", false,
     BuildMaxPool},
    {"Mean", 1, INT_MAX, "", false, BuildMean},
    {"MeanVarianceNormalization", 1, 1, "axes", false, BuildMeanVarianceNormalization},
    {"Min", 1, INT_MAX, "", true, BuildMin},
    {"Mod", 2, 2, "fmod", true, BuildMod},
    {"Mul", 2, 2, "axis broadcast", true, BuildMul},
    {"Neg", 1, 1, "", true, BuildNeg},
    {"Not", 1, 1, "", true, BuildNot},
    {"Or", 2, 2, "axis broadcast", true, BuildOr},
    {"PRelu", 2, 2, "", true, BuildPRelu},
    {"Pad", 1, 3, "mode pads value", true, BuildPad},
    {"Pow", 2, 2, "axis broadcast", true, BuildPow},
    {"QLinearConv", 8, 9, "auto_pad dilations group kernel_shape pads strides", false,
     BuildQLinearConv},
    {"QLinearMatMul", 8, 8, "", false, BuildQLinearMatMul},
    {"QuantizeLinear", 2, 3, "axis", true, BuildQuantizeLinear, /*reads_in_place=*/true},
    {"Range", 3, 3, "", true, BuildRange},
    {"Reciprocal", 1, 1, "", true, BuildReciprocal},
    {"ReduceL1", 1, 1, "axes keepdims", true, BuildReduceL1},
    {"ReduceL2", 1, 1, "axes keepdims", true, BuildReduceL2},
    {"ReduceLogSum", 1, 1, "axes keepdims", true, BuildReduceLogSum},
    {"ReduceLogSumExp", 1, 1, "axes keepdims", true, BuildReduceLogSumExp},
    {"ReduceMax", 1, 1, "axes keepdims", true, BuildReduceMax},
    {"ReduceMean", 1, 1, "axes keepdims", false, BuildReduceMean},
    {"ReduceMin", 1, 1, "axes keepdims", true, BuildReduceMin},
    {"ReduceProd", 1, 1, "axes keepdims", true, BuildReduceProd},
    {"ReduceSum", 1, 2, "axes keepdims noop_with_empty_axes", true, BuildReduceSum},
    {"ReduceSumSquare", 1, 1, "axes keepdims", true, BuildReduceSumSquare},
    {"Relu", 1, 1, "", false, BuildRelu},
    {"Reshape", 2, 2, "allowzero", true, BuildReshape},
    {"Resize", 1, 4,
     "coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value mode "
     "nearest_mode",
     false, BuildResize},
    {"Round", 1, 1, "", true, BuildRound},
    {"Selu", 1, 1, "alpha gamma", true, BuildSelu},
    {"Shape", 1, 1, "end start", true, BuildShape},
    {"Shrink", 1, 1, "bias lambd", true, BuildShrink},
    {"Sigmoid", 1, 1, "", false, BuildSigmoid},
    {"Sign", 1, 1, "", true, BuildSign},
    {"Sin", 1, 1, "", true, BuildSin},
    {"Sinh", 1, 1, "", true, BuildSinh},
    {"Size", 1, 1, "", true, BuildSize},
    {"Slice", 1, 5, "axes ends starts", true, BuildSlice},
    {"Softmax", 1, 1, "axis", false, BuildSoftmax},
    {"Softplus", 1, 1, "", false, BuildSoftplus},
    {"Softsign", 1, 1, "", true, BuildSoftsign},
    {"SpaceToDepth", 1, 1, "blocksize", false, BuildSpaceToDepth},
    {"Split", 1, 2, "axis split", true, BuildSplit},
    {"Sqrt", 1, 1, "", false, BuildSqrt},
    {"Squeeze", 1, 2, "axes", true, BuildSqueeze},
    {"Sub", 2, 2, "axis broadcast", true, BuildSub},
    {"Sum", 1, INT_MAX, "", false, BuildSum},
    {"Tan", 1, 1, "", true, BuildTan},
    {"Tanh", 1, 1, "", false, BuildTanh},
    {"ThresholdedRelu", 1, 1, "alpha", true, BuildThresholdedRelu},
    {"Tile", 2, 2, "", true, BuildTile},
    {"TopK", 1, 2, "axis k largest sorted", false, BuildTopK},
    {"Transpose", 1, 1, "perm", true, BuildTranspose},
    {"Unsqueeze", 1, 2, "axes", true, BuildUnsqueeze},
    {"Upsample", 1, 2, "mode scales", false, BuildResize},
    {"Where", 3, 3, "", true, BuildWhere},
    {"Xor", 2, 2, "axis broadcast", true, BuildXor},
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
