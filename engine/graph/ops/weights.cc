// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/ops/weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::graph {

Weights WeightsOf(const ConstantPtr& constant) {
  Weights weights;
  weights.key = constant->name;
  weights.dims = constant->dims;
  weights.data = constant->floats;
  weights.owner = constant->owner;
  weights.stored = constant->stored;
  return weights;
}

absl::StatusOr<std::vector<float>> ReadVector(const NodeContext& context, int i, int64_t length) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr vector, context.Floats(i));
  if (vector->dims != Dims{length}) {
    return context.node.Invalid(absl::StrCat("input ", i, " has dims ", DimsToString(vector->dims),
                                             ", expected [", length, "]"));
  }
  return std::vector<float>(vector->floats.begin(), vector->floats.end());
}

absl::StatusOr<ValueId> EmitScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                                       std::vector<float> shift, absl::string_view suffix) {
  const Dims dims = context.value(src).dims;
  if (dims.size() < 2 || dims.size() > 5) {
    return context.node.Unimplemented(absl::StrCat("scales per channel of rank ", dims.size()));
  }
  const bool flat = dims.size() == 2;
  Dims spatial_dims = dims;
  if (flat) spatial_dims.push_back(1);
  const size_t spatial_rank = spatial_dims.size() - 2;

  Convolution convolution;
  convolution.groups = dims[1];
  Dims weights_dims(spatial_dims.size(), 1);
  weights_dims[0] = dims[1];
  convolution.weights = WeightsOf(MakeFloats(absl::StrCat(context.output_name(), suffix),
                                             std::move(weights_dims), std::move(scale)));
  convolution.bias = std::move(shift);
  convolution.strides.assign(spatial_rank, 1);
  convolution.dilations.assign(spatial_rank, 0);
  convolution.padding_left.assign(spatial_rank, 0);
  convolution.padding_right.assign(spatial_rank, 0);
  if (!flat) return context.Emit(std::move(convolution), {src}, dims, suffix);
  ABSL_ASSIGN_OR_RETURN(const ValueId spatial, context.EmitReshape(src, spatial_dims, "/spatial"));
  ABSL_ASSIGN_OR_RETURN(const ValueId scaled,
                        context.Emit(std::move(convolution), {spatial}, spatial_dims, "/scaled"));
  return context.Emit(Reshape{}, {scaled}, dims, suffix);
}

absl::Status FinishScaleShift(NodeContext& context, ValueId src, std::vector<float> scale,
                              std::vector<float> shift) {
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        EmitScaleShift(context, src, std::move(scale), std::move(shift)));
  return context.SetOutput(dst);
}

}  // namespace tilewire::graph
