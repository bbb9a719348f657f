// SPDX-License-Identifier: Apache-2.0
//
// Gather: dst = src[..., indices, ...] along one axis. Constant indices make it a selection;
// computed ones need an operation of its own.
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

Dims GatheredDims(const Dims& src, const Dims& indices, int axis) {
  Dims dst(src.begin(), src.begin() + axis);
  dst.insert(dst.end(), indices.begin(), indices.end());
  dst.insert(dst.end(), src.begin() + axis + 1, src.end());
  return dst;
}

absl::Status GatherComputed(NodeContext& context, int axis) {
  const Operand src = context.input(0), indices = context.input(1);
  const DataType type = context.TypeOf(indices);
  const bool is_exact = type == DataType::kS32 || type == DataType::kS64;
  if (!is_exact) ABSL_RETURN_IF_ERROR(CheckCountable(context.node, src.dims[axis]));
  ValueId elements = src.value;
  if (elements == kNoValue) {
    ABSL_ASSIGN_OR_RETURN(elements, context.Numbers(src));
  }
  ValueId at = indices.value;
  if (!is_exact) {
    ABSL_ASSIGN_OR_RETURN(at, context.Numbers(indices));
  }
  return context.Finish(Gather{axis}, {elements, at}, GatheredDims(src.dims, indices.dims, axis));
}

absl::Status BuildGather(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, node.Int("axis", 0));
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, src.dims.size()));
  if (context.input(1).constant == nullptr) return GatherComputed(context, axis);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr indices, context.Ints(1));
  std::vector<int64_t> from;
  for (int64_t index : indices->ints) {
    ABSL_ASSIGN_OR_RETURN(const int at, NormalizeAxis(node, index, src.dims[axis]));
    from.push_back(at);
  }
  Select select = WholeOf(src.dims.size());
  select.from[axis] = from.empty() ? IndexRuns{{0, 1, 0}} : RunsOf(from);
  Dims dst = GatheredDims(src.dims, indices->dims, axis);
  const bool same_rank = indices->dims.size() == 1;
  ABSL_ASSIGN_OR_RETURN(const Operand gathered,
                        SelectOf(context, src, std::move(select), same_rank ? "" : "/gathered"));
  ABSL_ASSIGN_OR_RETURN(const Operand result, ReshapeOf(context, gathered, std::move(dst)));
  return context.SetOutput(result);
}

}  // namespace

TILEWIRE_OPERATORS(Gather) = {
    {"Gather", 1, 2, 2, "axis", BuildGather, Folds::kInMemory},
};

}  // namespace tilewire::graph
