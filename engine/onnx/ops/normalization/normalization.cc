// SPDX-License-Identifier: Apache-2.0
//
// Normalisations by statistics of the tensor itself, as operations that follow each other:
//
//   dst = scale * (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) + bias
//
// over the spatial dimensions (InstanceNormalization), over these and the channels of a group
// (GroupNormalization), over all dimensions from an axis on (LayerNormalization; one operation
// where scale and bias are known or learn), or over named axes without scale and bias
// (MeanVarianceNormalization).
#include "engine/onnx/ops/normalization/normalization.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/arithmetic/reduce_of.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {

using network::Reduce;
namespace {

absl::StatusOr<Operand> DeviationOf(NodeContext& context, const Operand& variance, float epsilon) {
  ABSL_ASSIGN_OR_RETURN(const Operand shifted, LinearOf(context, variance, 1, epsilon, "/shifted"));
  return ActivationOf(context, {EltwiseAlgorithm::kSqrt}, shifted, "/deviation");
}

// Sets output 1 to the mean and output 2 to the reciprocal of the deviation, where they are used.
absl::Status SetStatistics(NodeContext& context, const Standard& standard) {
  if (context.node.HasOutput(1)) ABSL_RETURN_IF_ERROR(context.SetOutput(standard.mean, 1));
  if (!context.node.HasOutput(2)) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const Operand inverse, ElementwiseOf(context, {Function::kReciprocal},
                                                             {standard.deviation}, "/inverse"));
  return context.SetOutput(inverse, 2);
}

// Whether a scale or shift of LayerNormalization has one number per row element. To inference it is
// a constant.
bool IsRowOf(NodeContext& context, const Operand& operand, const Dims& row) {
  if (operand.dims != row) return false;
  if (operand.constant != nullptr) return operand.constant->is_float;
  return context.training() != nullptr && context.TypeOf(operand) == DataType::kF32;
}

// Scale and shift as numbers that the operation holds.
absl::Status HoldParameters(NodeContext& context, int64_t columns,
                            network::LayerNormalization* norm) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr scale, context.Floats(1));
  norm->scale.assign(scale->floats.begin(), scale->floats.end());
  norm->shift.assign(columns, 0);
  if (!context.Has(2)) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shift, context.Floats(2));
  norm->shift.assign(shift->floats.begin(), shift->floats.end());
  return absl::OkStatus();
}

// The same as sources, if one of them learns.
absl::Status ReadParameters(NodeContext& context, int64_t columns, std::vector<ValueId>* srcs) {
  for (int i : {1, 2}) {
    const Operand operand =
        context.Has(i) ? context.input(i)
                       : context.KnownFloats("/shift", {columns}, std::vector<float>(columns, 0));
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(operand));
    ABSL_ASSIGN_OR_RETURN(srcs->emplace_back(),
                          context.EmitReshape(value, {columns}, i == 1 ? "/scale" : "/shift"));
  }
  return absl::OkStatus();
}

// A row consists of all dimensions from the axis on.
absl::Status FinishLayerNormalization(NodeContext& context, const Operand& src, int axis,
                                      float epsilon) {
  int64_t rows = 1, columns = 1;
  for (size_t d = 0; d < src.dims.size(); ++d)
    (static_cast<int>(d) < axis ? rows : columns) *= src.dims[d];
  const bool is_matrix = src.dims == Dims{rows, columns};
  ABSL_ASSIGN_OR_RETURN(const ValueId matrix,
                        context.EmitReshape(src.value, {rows, columns}, "/matrix"));
  network::LayerNormalization norm{.epsilon = epsilon};
  std::vector<ValueId> srcs = {matrix};
  norm.reads_parameters = context.input(1).constant == nullptr ||
                          (context.Has(2) && context.input(2).constant == nullptr);
  ABSL_RETURN_IF_ERROR(norm.reads_parameters ? ReadParameters(context, columns, &srcs)
                                             : HoldParameters(context, columns, &norm));
  ABSL_ASSIGN_OR_RETURN(
      const ValueId result,
      context.Emit(std::move(norm), std::move(srcs), {rows, columns}, is_matrix ? "" : "/rows"));
  return context.SetOutput(context.EmitReshape(result, src.dims));
}

}  // namespace

absl::StatusOr<Operand> StandardizedBy(NodeContext& context, const Operand& src,
                                       const Operand& mean, const Operand& variance,
                                       float epsilon) {
  ABSL_ASSIGN_OR_RETURN(const Operand centred,
                        ElementwiseOf(context, {Function::kSub}, {src, mean}, "/centred"));
  ABSL_ASSIGN_OR_RETURN(const Operand deviation, DeviationOf(context, variance, epsilon));
  return ElementwiseOf(context, {Function::kDiv}, {centred, deviation}, "/standardized");
}

absl::StatusOr<Standard> Standardized(NodeContext& context, const Operand& src,
                                      const std::vector<bool>& reduced, float epsilon) {
  Standard standard;
  ABSL_ASSIGN_OR_RETURN(standard.mean,
                        ReduceOf(context, Reduce::Function::kMean, src, reduced, "/mean"));
  ABSL_ASSIGN_OR_RETURN(const Operand centred,
                        ElementwiseOf(context, {Function::kSub}, {src, standard.mean}, "/centred"));
  ABSL_ASSIGN_OR_RETURN(const Operand squares,
                        ActivationOf(context, {EltwiseAlgorithm::kSquare}, centred, "/squares"));
  ABSL_ASSIGN_OR_RETURN(standard.variance,
                        ReduceOf(context, Reduce::Function::kMean, squares, reduced, "/variance"));
  ABSL_ASSIGN_OR_RETURN(standard.deviation, DeviationOf(context, standard.variance, epsilon));
  ABSL_ASSIGN_OR_RETURN(
      standard.result,
      ElementwiseOf(context, {Function::kDiv}, {centred, standard.deviation}, "/standardized"));
  return standard;
}

absl::StatusOr<Operand> ParameterOf(NodeContext& context, int i, const Dims& src, Per per) {
  const bool of_channels = per == Per::kChannel;
  const Dims wanted = of_channels ? Dims{src[1]} : Dims(src.begin() + 1, src.end());
  if (context.input(i).dims != wanted) {
    return context.node.Invalid("input ", i, " is not one number per ",
                                of_channels ? "channel" : "element");
  }
  if (!of_channels) return context.input(i);
  Dims channel(src.size() - 1, 1);
  channel[0] = src[1];
  return ReshapeOf(context, context.input(i), std::move(channel), absl::StrCat("/channel", i));
}

absl::StatusOr<Operand> ScaledByInputs(NodeContext& context, const Operand& src, Per per) {
  Operand result = src;
  for (int i = 1; i <= 2; ++i) {
    ABSL_ASSIGN_OR_RETURN(const Operand factor, ParameterOf(context, i, src.dims, per));
    ABSL_ASSIGN_OR_RETURN(result, ElementwiseOf(context, {i == 1 ? Function::kMul : Function::kAdd},
                                                {result, factor}, i == 1 ? "/scaled" : ""));
  }
  return result;
}

namespace {

absl::Status BuildInstanceNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  const size_t rank = src.dims.size();
  if (rank < 3) return context.node.Invalid("the input has no spatial dimensions");
  ABSL_ASSIGN_OR_RETURN(const float epsilon, context.node.Float("epsilon", 1e-5f));
  std::vector<bool> reduced(rank, true);
  reduced[0] = reduced[1] = false;
  ABSL_ASSIGN_OR_RETURN(const Standard standard, Standardized(context, src, reduced, epsilon));
  return context.SetOutput(ScaledByInputs(context, standard.result, Per::kChannel));
}

// The groups are channels while statistics are taken; from opset 21 on, scale and bias are of the
// channels.
absl::Status BuildGroupNormalization(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  if (src.dims.size() < 3) return node.Invalid("the input has no spatial dimensions");
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-5f));
  ABSL_ASSIGN_OR_RETURN(const int64_t groups, node.Int("num_groups", 0));
  if (groups < 1 || src.dims[1] % groups != 0)
    return node.Invalid(groups, " groups of ", src.dims[1], " channels");
  int64_t pixels = 1;
  for (size_t d = 2; d < src.dims.size(); ++d) pixels *= src.dims[d];
  const Dims grouped = {src.dims[0], groups, src.dims[1] / groups * pixels};
  ABSL_ASSIGN_OR_RETURN(const Operand rows, ReshapeOf(context, src, grouped, "/groups"));
  ABSL_ASSIGN_OR_RETURN(const Standard standard,
                        Standardized(context, rows, {false, false, true}, epsilon));
  if (node.opset() < 21) {
    ABSL_ASSIGN_OR_RETURN(const Operand scaled,
                          ScaledByInputs(context, standard.result, Per::kChannel));
    return context.SetOutput(ReshapeOf(context, scaled, src.dims, "/image"));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand image,
                        ReshapeOf(context, standard.result, src.dims, "/image"));
  return context.SetOutput(ScaledByInputs(context, image, Per::kChannel));
}

// x / sqrt(mean of x^2 + epsilon) * scale, over all dimensions from an axis on.
absl::Status BuildRmsNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(context.node, -1, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const float epsilon, context.node.Float("epsilon", 1e-5f));
  std::vector<bool> reduced(src.dims.size(), false);
  for (size_t d = axis; d < reduced.size(); ++d) reduced[d] = true;
  ABSL_ASSIGN_OR_RETURN(const Operand squares,
                        ActivationOf(context, {EltwiseAlgorithm::kSquare}, src, "/squares"));
  ABSL_ASSIGN_OR_RETURN(const Operand mean,
                        ReduceOf(context, Reduce::Function::kMean, squares, reduced, "/mean"));
  ABSL_ASSIGN_OR_RETURN(const Operand deviation, DeviationOf(context, mean, epsilon));
  ABSL_ASSIGN_OR_RETURN(const Operand result,
                        ElementwiseOf(context, {Function::kDiv}, {src, deviation}, "/normalized"));
  return context.SetOutput(ElementwiseOf(context, {Function::kMul}, {result, context.input(1)}));
}

// x divided by the sum of |x|, or the root of the sum of x^2, along an axis.
absl::Status BuildLpNormalization(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  if (p != 1 && p != 2) return node.Invalid("p ", p);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, -1, src.dims.size()));
  std::vector<bool> reduced(src.dims.size(), false);
  reduced[axis] = true;
  const auto function = p == 1 ? Reduce::Function::kSumOfAbs : Reduce::Function::kSumOfSquares;
  ABSL_ASSIGN_OR_RETURN(Operand norm, ReduceOf(context, function, src, reduced, "/sum"));
  if (p == 2) {
    ABSL_ASSIGN_OR_RETURN(norm, ActivationOf(context, {EltwiseAlgorithm::kSqrt}, norm, "/norm"));
  }
  return context.SetOutput(ElementwiseOf(context, {Function::kDiv}, {src, norm}));
}

absl::Status BuildLayerNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  const bool wants_statistics = context.node.HasOutput(1) || context.node.HasOutput(2);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(context.node, -1, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const float epsilon, context.node.Float("epsilon", 1e-5f));
  std::vector<bool> reduced(src.dims.size(), false);
  for (size_t d = axis; d < reduced.size(); ++d) reduced[d] = true;
  const Dims row(src.dims.begin() + axis, src.dims.end());
  const bool is_real = src.value != kNoValue && context.TypeOf(src) == DataType::kF32;
  if (!wants_statistics && is_real && IsRowOf(context, context.input(1), row) &&
      (!context.Has(2) || IsRowOf(context, context.input(2), row))) {
    return FinishLayerNormalization(context, src, axis, epsilon);
  }
  ABSL_ASSIGN_OR_RETURN(const Standard standard, Standardized(context, src, reduced, epsilon));
  ABSL_RETURN_IF_ERROR(SetStatistics(context, standard));
  ABSL_ASSIGN_OR_RETURN(
      Operand result,
      ElementwiseOf(context, {Function::kMul}, {standard.result, context.input(1)}, "/scaled"));
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(result,
                          ElementwiseOf(context, {Function::kAdd}, {result, context.input(2)}));
  }
  return context.SetOutput(result);
}

absl::Status BuildMeanVarianceNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, context.node.Ints("axes", {0, 2, 3}));
  std::vector<bool> reduced(src.dims.size(), false);
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.node, raw_axis, src.dims.size()));
    reduced[axis] = true;
  }
  ABSL_ASSIGN_OR_RETURN(const Standard standard, Standardized(context, src, reduced, 1e-9f));
  return context.SetOutput(standard.result);
}

}  // namespace

TILEWIRE_OPERATORS(Normalization) = {
    OfReals(TrainsWeights({"GroupNormalization", 18, 3, 3, "epsilon num_groups stash_type",
                           BuildGroupNormalization})),
    OfReals(TrainsWeights({"InstanceNormalization", 1, 3, 3, "epsilon",
                           BuildInstanceNormalization})),
    // ONNX Runtime's optimiser writes it in opsets before ONNX's first, too.
    OfReals(TrainsWeights({"LayerNormalization", 1, 2, 3, "axis epsilon stash_type",
                           BuildLayerNormalization})),
    OfReals({"LpNormalization", 1, 1, 1, "axis p", BuildLpNormalization}),
    OfReals({"MeanVarianceNormalization", 9, 1, 1, "axes", BuildMeanVarianceNormalization}),
    OfReals(TrainsWeights({"RMSNormalization", 23, 2, 2, "axis epsilon stash_type",
                           BuildRmsNormalization})),
};

}  // namespace tilewire::reader
