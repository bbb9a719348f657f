// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/ops/convolution.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/weights.h"
#include "engine/graph/ops/window.h"

namespace tilewire::graph {
namespace {

absl::Status CheckShapes(const Node& node, const Dims& src, const Dims& weights, int64_t groups) {
  if (src.size() < 3 || src.size() > 5 || weights.size() != src.size()) {
    return node.Invalid(absl::StrCat("input ", DimsToString(src), " and weights ",
                                     DimsToString(weights), " need equal ranks of 3 to 5"));
  }
  for (int64_t dim : weights) {
    if (dim < 1 || dim > INT32_MAX)
      return node.Invalid(absl::StrCat("weights ", DimsToString(weights)));
  }
  if (groups < 1 || groups > weights[0] || weights[0] % groups != 0 || src[1] % groups != 0 ||
      src[1] / groups != weights[1]) {
    return node.Invalid(absl::StrCat("input ", DimsToString(src), ", weights ",
                                     DimsToString(weights), " and group ", groups, " do not fit"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValueId> EmitConvolution(NodeContext& context, ValueId src,
                                        const ConstantPtr& weights, std::vector<float> bias,
                                        absl::string_view suffix) {
  const Node& node = context.node;
  const Dims src_dims = context.value(src).dims;
  Convolution convolution;
  ABSL_ASSIGN_OR_RETURN(convolution.groups, node.Int("group", 1));
  ABSL_RETURN_IF_ERROR(CheckShapes(node, src_dims, weights->dims, convolution.groups));

  const Dims kernel(weights->dims.begin() + 2, weights->dims.end());
  ABSL_ASSIGN_OR_RETURN(const auto declared,
                        node.Ints("kernel_shape", {kernel.begin(), kernel.end()}));
  if (Dims(declared.begin(), declared.end()) != kernel) {
    return node.Invalid(
        absl::StrCat("kernel_shape differs from weights ", DimsToString(weights->dims)));
  }
  ABSL_ASSIGN_OR_RETURN(const Window window,
                        ReadWindow(node, src_dims, kernel, /*ceil_mode=*/false));
  convolution.strides = window.strides;
  for (int64_t dilation : window.dilations) convolution.dilations.push_back(dilation - 1);
  convolution.padding_left = window.padding_left;
  convolution.padding_right = window.padding_right;
  convolution.weights = WeightsOf(weights, /*output_axis=*/0);
  convolution.bias = std::move(bias);
  Dims dst = {src_dims[0], weights->dims[0]};
  dst.insert(dst.end(), window.dst.begin(), window.dst.end());
  return context.Emit(std::move(convolution), {src}, std::move(dst), suffix);
}

absl::Status LowerConv(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr weights, context.FloatsInPlace(1));
  std::vector<float> bias;
  if (context.Has(2)) {
    const int64_t outputs = weights->dims.empty() ? 0 : weights->dims[0];
    ABSL_ASSIGN_OR_RETURN(bias, ReadVector(context, 2, outputs));
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, EmitConvolution(context, src, weights, std::move(bias)));
  return context.SetOutput(dst);
}

}  // namespace tilewire::graph
