// SPDX-License-Identifier: Apache-2.0
//
// Gather with indices that are known: dst = src[..., indices, ...] along one axis.
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {

absl::Status LowerGather(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr indices, context.Ints(1));
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, node.Int("axis", 0));
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, src.dims.size()));
  std::vector<int64_t> from;
  for (int64_t index : indices->ints) {
    ABSL_ASSIGN_OR_RETURN(const int at, NormalizeAxis(node, index, src.dims[axis]));
    from.push_back(at);
  }
  Select select = WholeOf(src.dims.size());
  select.from[axis] = from.empty() ? IndexRuns{{0, 1, 0}} : RunsOf(from);
  Dims dst(src.dims.begin(), src.dims.begin() + axis);
  dst.insert(dst.end(), indices->dims.begin(), indices->dims.end());
  dst.insert(dst.end(), src.dims.begin() + axis + 1, src.dims.end());
  const bool same_rank = indices->dims.size() == 1;
  ABSL_ASSIGN_OR_RETURN(const Operand gathered,
                        SelectOf(context, src, std::move(select), same_rank ? "" : "/gathered"));
  ABSL_ASSIGN_OR_RETURN(const Operand result, ReshapeOf(context, gathered, std::move(dst)));
  return context.SetOutput(result);
}

}  // namespace tilewire::graph
