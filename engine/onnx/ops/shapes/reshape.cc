// SPDX-License-Identifier: Apache-2.0
//
// Operators that give the same elements other dims: constants without a copy, others by a Reshape.
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

absl::Status FinishReshape(NodeContext& context, Dims dst) {
  const Operand src = context.input(0);
  const std::optional<int64_t> count = ElementCount(dst);
  if (!count || count != ElementCount(src.dims)) {
    return context.node.Invalid("cannot view ", DimsToString(src.dims), " as ", DimsToString(dst));
  }
  if (src.constant != nullptr) {
    return context.SetOutput(
        network::Reshaped(*src.constant, context.output_name(), std::move(dst)));
  }
  return context.SetOutput(context.EmitReshape(src.value, std::move(dst)));
}

// Axes are an attribute before opset 13, then an optional input.
absl::StatusOr<std::vector<int64_t>> ReadMarkedAxes(const NodeContext& context) {
  if (context.node.opset() < 13) return context.node.Ints("axes", {});
  if (context.node.HasAttribute("axes")) return context.node.Invalid("unknown attribute 'axes'");
  if (!context.Has(1)) return std::vector<int64_t>();
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr axes, context.Ints(1));
  return axes->ints;
}

absl::StatusOr<std::vector<bool>> MarkAxes(const NodeContext& context, size_t rank) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReadMarkedAxes(context));
  std::vector<bool> marked(rank, false);
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.node, raw_axis, rank));
    if (marked[axis]) return context.node.Invalid("axis ", raw_axis, " twice");
    marked[axis] = true;
  }
  return marked;
}

absl::Status BuildFlatten(NodeContext& context) {
  const Dims& dims = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(int64_t axis, context.node.Int("axis", 1));
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis > rank)
    return context.node.Invalid("axis ", axis, " is outside rank ", rank);
  if (axis < 0) axis += rank;
  Dims dst = {1, 1};
  for (int64_t i = 0; i < rank; ++i) dst[i < axis ? 0 : 1] *= dims[i];
  return FinishReshape(context, std::move(dst));
}

// An attribute before opset 5.
absl::StatusOr<ConstantPtr> ShapeOf(const NodeContext& context) {
  const Node& node = context.node;
  if (node.opset() < 5) {
    ABSL_ASSIGN_OR_RETURN(std::vector<int64_t> shape, node.Ints("shape", {}));
    const int64_t rank = static_cast<int64_t>(shape.size());
    return MakeInts("", {rank}, std::move(shape));
  }
  if (!context.Has(1)) return node.Invalid("input 1 is missing");
  return context.Ints(1);
}

absl::Status BuildReshape(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shape, ShapeOf(context));
  ABSL_ASSIGN_OR_RETURN(const int64_t allow_zero, node.Int("allowzero", 0));
  if (shape->dims.size() != 1) return node.Invalid("a shape of dims ", DimsToString(shape->dims));
  if (shape->count() > kMaxRank) {
    return node.Invalid("a shape of rank ", shape->count(), "; the highest is ", kMaxRank);
  }
  const Dims& src = context.input(0).dims;
  Dims dst(shape->ints.begin(), shape->ints.end());
  int inferred = -1;
  int64_t known = 1;
  for (size_t i = 0; i < dst.size(); ++i) {
    if (dst[i] == 0 && allow_zero == 0) {
      if (i >= src.size())
        return node.Invalid("shape ", DimsToString(dst), " copies a missing dimension");
      dst[i] = src[i];
    }
    if (dst[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
      continue;
    }
    const std::optional<int64_t> product = CheckedMul(known, dst[i]);
    if (dst[i] < 0 || !product) return node.Invalid("shape ", DimsToString(dst));
    known = *product;
  }
  if (inferred >= 0) dst[inferred] = known == 0 ? 0 : ElementCount(src).value_or(0) / known;
  return FinishReshape(context, std::move(dst));
}

absl::Status BuildSqueeze(NodeContext& context) {
  const Dims& src = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> removed, MarkAxes(context, src.size()));
  const bool all_ones = std::find(removed.begin(), removed.end(), true) == removed.end();
  Dims dst;
  for (size_t i = 0; i < src.size(); ++i) {
    if (removed[i] && src[i] != 1)
      return context.node.Invalid("axis ", i, " of ", DimsToString(src));
    if (!removed[i] && !(all_ones && src[i] == 1)) dst.push_back(src[i]);
  }
  return FinishReshape(context, std::move(dst));
}

absl::Status BuildUnsqueeze(NodeContext& context) {
  const Dims& src = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReadMarkedAxes(context));
  const size_t rank = src.size() + axes.size();
  if (axes.empty() || rank > kMaxRank) return context.node.Invalid(axes.size(), " axes");
  ABSL_ASSIGN_OR_RETURN(const std::vector<bool> added, MarkAxes(context, rank));
  Dims dst;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) dst.push_back(added[i] ? 1 : src[next++]);
  return FinishReshape(context, std::move(dst));
}

}  // namespace

TILEWIRE_OPERATORS(Reshape) = {
    TrainsFirst({"Flatten", 1, 1, 1, "axis", BuildFlatten, Folds::kInMemory}),
    TrainsFirst({"Reshape", 1, 1, 2, "allowzero shape", BuildReshape, Folds::kInMemory,
                 LikeFirstInput, Inputs({1})}),
    TrainsFirst({"Squeeze", 1, 1, 2, "axes", BuildSqueeze, Folds::kInMemory, LikeFirstInput,
                 Inputs({1})}),
    TrainsFirst({"Unsqueeze", 1, 1, 2, "axes", BuildUnsqueeze, Folds::kInMemory, LikeFirstInput,
                 Inputs({1})}),
};

}  // namespace tilewire::reader
