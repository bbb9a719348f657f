// SPDX-License-Identifier: Apache-2.0
//
// Expand (to a shape, by numpy's broadcasting) and Tile (every dimension a number of times).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

constexpr int64_t kMostRepeats = int64_t{1} << 20;  // of one dimension of more than one element

absl::Status BuildExpand(NodeContext& context) {
  const Node& node = context.node;
  Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shape, context.Ints(1));
  const size_t rank = std::max(src.dims.size(), shape->ints.size());
  if (rank > kMaxRank) return node.Invalid(absl::StrCat("rank ", rank));
  Dims raised(rank - src.dims.size(), 1);
  raised.insert(raised.end(), src.dims.begin(), src.dims.end());
  ABSL_ASSIGN_OR_RETURN(src, ReshapeOf(context, src, std::move(raised), "/raised"));
  Select select = WholeOf(rank);
  for (size_t i = 1; i <= shape->ints.size(); ++i) {
    const int64_t wanted = shape->ints[shape->ints.size() - i], size = src.dims[rank - i];
    if (wanted == 1 || wanted == size) continue;
    if (size != 1 || wanted < 0) {
      return node.Invalid(absl::StrCat(DimsToString(src.dims), " does not expand to ",
                                       DimsToString(Dims(shape->ints.begin(), shape->ints.end()))));
    }
    select.from[rank - i] = {{0, 0, wanted}};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand dst, SelectOf(context, src, std::move(select)));
  return context.SetOutput(dst);
}

absl::Status BuildTile(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr repeats, context.Ints(1));
  if (repeats->ints.size() != src.dims.size())
    return node.Invalid(absl::StrCat(repeats->ints.size(), " repeats for rank ", src.dims.size()));
  Select select = WholeOf(src.dims.size());
  for (size_t d = 0; d < src.dims.size(); ++d) {
    const int64_t times = repeats->ints[d];
    if (times < 0) return node.Invalid(absl::StrCat("repeats ", times));
    if (src.dims[d] == 1 || times == 0) {
      select.from[d] = {{0, 0, times}};
    } else if (times <= kMostRepeats) {
      select.from[d].assign(times, {0, 1, src.dims[d]});
    } else {
      return node.Unimplemented(absl::StrCat(times, " repeats; supported are ", kMostRepeats));
    }
  }
  ABSL_ASSIGN_OR_RETURN(const Operand dst, SelectOf(context, src, std::move(select)));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Repeat) = {
    {"Expand", 8, 2, 2, "", BuildExpand, Folds::kInMemory, LikeFirstInput, Inputs({1})},
    {"Tile", 1, 2, 2, "", BuildTile, Folds::kInMemory, LikeFirstInput, Inputs({1})},
};

}  // namespace tilewire::graph
