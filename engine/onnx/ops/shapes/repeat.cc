// SPDX-License-Identifier: Apache-2.0
//
// Expand (to a shape, by numpy's broadcasting) and Tile (every dimension a number of times).
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kMostRepeats = int64_t{1} << 20;  // of one dimension of more than one element

absl::Status BuildExpand(NodeContext& context) {
  const Node& node = context.node;
  Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shape, context.Ints(1));
  const size_t rank = std::max(src.dims.size(), shape->ints.size());
  if (rank > kMaxRank) return node.Invalid("rank ", rank);
  Dims raised(rank - src.dims.size(), 1);
  raised.insert(raised.end(), src.dims.begin(), src.dims.end());
  ABSL_ASSIGN_OR_RETURN(src, ReshapeOf(context, src, std::move(raised), "/raised"));
  Select select = WholeOf(rank);
  for (size_t i = 1; i <= shape->ints.size(); ++i) {
    const int64_t wanted = shape->ints[shape->ints.size() - i], size = src.dims[rank - i];
    if (wanted == 1 || wanted == size) continue;
    if (size != 1 || wanted < 0) {
      return node.Invalid(DimsToString(src.dims), " does not expand to ",
                          DimsToString(Dims(shape->ints.begin(), shape->ints.end())));
    }
    select.from[rank - i] = {{0, 0, wanted}};
  }
  return context.SetOutput(SelectOf(context, src, std::move(select)));
}

// One number for each dimension; before opset 6, the number for one axis, which is input 2.
absl::StatusOr<ConstantPtr> RepeatsOf(const NodeContext& context, size_t rank) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, context.Ints(1));
  if (node.opset() >= 6 && context.Has(2)) return node.Invalid("3 inputs");
  if (node.opset() >= 6) return given;
  if (!context.Has(2)) return node.Invalid("input 2 is missing");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr axes, context.Ints(2));
  if (given->count() != 1 || axes->count() != 1) return node.Invalid("tiles of several axes");
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, axes->ints[0], rank));
  std::vector<int64_t> repeats(rank, 1);
  repeats[axis] = given->ints[0];
  return MakeInts("", {static_cast<int64_t>(rank)}, std::move(repeats));
}

absl::Status BuildTile(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr repeats, RepeatsOf(context, src.dims.size()));
  if (repeats->ints.size() != src.dims.size())
    return node.Invalid(repeats->ints.size(), " repeats for rank ", src.dims.size());
  Select select = WholeOf(src.dims.size());
  for (size_t d = 0; d < src.dims.size(); ++d) {
    const int64_t times = repeats->ints[d];
    if (times < 0) return node.Invalid("repeats ", times);
    if (src.dims[d] == 1 || times == 0) {
      select.from[d] = {{0, 0, times}};
    } else if (times <= kMostRepeats) {
      select.from[d].assign(times, {0, 1, src.dims[d]});
    } else {
      return node.Unimplemented(times, " repeats; supported are ", kMostRepeats);
    }
  }
  return context.SetOutput(SelectOf(context, src, std::move(select)));
}

}  // namespace

TILEWIRE_OPERATORS(Repeat) = {
    TrainsFirst({"Expand", 8, 2, 2, "", BuildExpand, Folds::kInMemory, LikeFirstInput,
                 Inputs({1})}),
    TrainsFirst({"Tile", 1, 2, 3, "", BuildTile, Folds::kInMemory, LikeFirstInput, Inputs({1, 2})}),
};

}  // namespace tilewire::reader
