// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/windows/convolution.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/weights.h"
#include "engine/onnx/ops/windows/window.h"

namespace tilewire::reader {

using network::ComputedConvolution;
namespace {

absl::Status CheckShapes(const Node& node, const Dims& src, const Dims& weights, int64_t groups) {
  if (src.size() < 3 || src.size() > 5 || weights.size() != src.size()) {
    return node.Invalid("input ", DimsToString(src), " and weights ", DimsToString(weights),
                        " need equal ranks of 3 to 5");
  }
  for (int64_t dim : weights) {
    if (dim < 1 || dim > INT32_MAX) return node.Invalid("weights ", DimsToString(weights));
  }
  if (groups < 1 || groups > weights[0] || weights[0] % groups != 0 || src[1] % groups != 0 ||
      src[1] / groups != weights[1]) {
    return node.Invalid("input ", DimsToString(src), ", weights ", DimsToString(weights),
                        " and group ", groups, " do not fit");
  }
  return absl::OkStatus();
}

// A bias that is computed at run time is added by an operation of its own.
absl::StatusOr<ValueId> EmitKnown(NodeContext& context, ValueId src, ComputedConvolution window,
                                  const ConstantPtr& weights, const Operand& bias, Dims dst,
                                  absl::string_view suffix) {
  network::Convolution convolution;
  convolution.groups = window.groups;
  convolution.sums_integers = context.node.op() == "ConvInteger";
  convolution.strides = std::move(window.strides);
  convolution.dilations = std::move(window.dilations);
  convolution.padding_left = std::move(window.padding_left);
  convolution.padding_right = std::move(window.padding_right);
  convolution.weights = WeightsOf(weights, /*output_axis=*/0);
  const bool adds = bias.value != kNoValue;
  if (bias.constant != nullptr) {
    if (!bias.constant->is_float) return context.node.Invalid("the bias is not floating-point");
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(bias.constant));
    convolution.bias.assign(known->floats.begin(), known->floats.end());
  }
  Dims channels(dst.size() - 1, 1);
  channels[0] = dst[1];
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(std::move(convolution), {src}, dst,
                                     absl::StrCat(suffix, adds ? "/unbiased" : "")));
  if (!adds) return result;
  ABSL_ASSIGN_OR_RETURN(const Operand raised, ReshapeOf(context, bias, std::move(channels),
                                                        absl::StrCat(suffix, "/bias")));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ElementwiseOf(context, {Function::kAdd},
                                      {{nullptr, result, std::move(dst)}, raised}, suffix));
  return sum.value;
}

}  // namespace

absl::Status CheckBias(const Node& node, const Operand& bias, int64_t outputs) {
  if (!bias.defined() || bias.dims == Dims{outputs}) return absl::OkStatus();
  return node.Invalid("a bias of dims ", DimsToString(bias.dims), ", expected [", outputs, "]");
}

absl::StatusOr<ValueId> EmitWindowed(NodeContext& context, ValueId src, ComputedConvolution window,
                                     const Operand& weights, const Operand& bias, Dims dst,
                                     absl::string_view suffix) {
  ABSL_RETURN_IF_ERROR(CheckBias(context.node, bias, dst[1]));
  if (weights.constant != nullptr) {
    return EmitKnown(context, src, std::move(window), weights.constant, bias, std::move(dst),
                     suffix);
  }
  std::vector<ValueId> srcs = {src};
  ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.AsValue(weights));
  if (bias.defined()) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.AsValue(bias));
  }
  return context.Emit(std::move(window), std::move(srcs), std::move(dst), suffix);
}

absl::StatusOr<ValueId> EmitConvolution(NodeContext& context, ValueId src, const Operand& weights,
                                        const Operand& bias, absl::string_view suffix) {
  const Node& node = context.node;
  const Dims src_dims = context.value(src).dims;
  ComputedConvolution convolution;
  ABSL_ASSIGN_OR_RETURN(convolution.groups, node.Int("group", 1));
  ABSL_RETURN_IF_ERROR(CheckShapes(node, src_dims, weights.dims, convolution.groups));

  const Dims kernel(weights.dims.begin() + 2, weights.dims.end());
  ABSL_ASSIGN_OR_RETURN(const auto declared,
                        node.Ints("kernel_shape", {kernel.begin(), kernel.end()}));
  if (Dims(declared.begin(), declared.end()) != kernel) {
    return node.Invalid("kernel_shape differs from weights ", DimsToString(weights.dims));
  }
  ABSL_ASSIGN_OR_RETURN(Window window, ReadWindow(node, src_dims, kernel, /*ceil_mode=*/false));
  convolution.strides = std::move(window.strides);
  for (int64_t dilation : window.dilations) convolution.dilations.push_back(dilation - 1);
  convolution.padding_left = std::move(window.padding_left);
  convolution.padding_right = std::move(window.padding_right);
  Dims dst = {src_dims[0], weights.dims[0]};
  dst.insert(dst.end(), window.dst.begin(), window.dst.end());
  return EmitWindowed(context, src, std::move(convolution), weights, bias, std::move(dst), suffix);
}

namespace {

absl::Status BuildConv(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  if (context.input(1).constant != nullptr) ABSL_RETURN_IF_ERROR(context.FloatsInPlace(1).status());
  const Operand bias = context.Has(2) ? context.input(2) : Operand();
  return context.SetOutput(EmitConvolution(context, src, context.input(1), bias));
}

}  // namespace

TILEWIRE_OPERATORS(Convolution) = {
    TrainsWeights({"Conv", 1, 2, 3, "auto_pad dilations group kernel_shape pads strides",
                   BuildConv}),
};

}  // namespace tilewire::reader
