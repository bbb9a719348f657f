// SPDX-License-Identifier: Apache-2.0
//
// What moves elements without computing: slices, splits, pads, repeats, gathers, nearest resizing.
// Each says which index of its source every index of its result comes from, one dimension
// independent of the others (network.h: Select); of a constant the result is folded, of a computed
// tensor it is an operation.
#ifndef ENGINE_GRAPH_OPS_SELECT_H_
#define ENGINE_GRAPH_OPS_SELECT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

using IndexRuns = std::vector<IndexRun>;

// A selection that takes every dimension of a tensor of this rank as it is.
Select WholeOf(size_t rank);

// The shortest runs that list these indices.
IndexRuns RunsOf(absl::Span<const int64_t> indices);

// What `select` takes of `src`, under the name of output 0 and `suffix`; `src` itself where it
// takes everything.
//   kUnimplemented    a folded constant of more than 2^24 elements
//   kInvalidArgument  as NodeContext::Emit()
absl::StatusOr<Operand> SelectOf(NodeContext& context, const Operand& src, Select select,
                                 absl::string_view suffix = "");

// The same elements under other dims (of the same count).
absl::StatusOr<Operand> ReshapeOf(NodeContext& context, const Operand& src, Dims dims,
                                  absl::string_view suffix = "");

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_SELECT_H_
