// SPDX-License-Identifier: Apache-2.0
//
// Moves elements without computing, for all operators that do so among other things. Slices,
// splits, pads, repeats, gathers and nearest resizing map every index of their result to an index
// of their source, dimension by dimension (Select in movement.h). A constant is folded; for a
// computed tensor an operation is emitted.
#ifndef ENGINE_ONNX_OPS_SHAPES_MOVES_H_
#define ENGINE_ONNX_OPS_SHAPES_MOVES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

using network::Select;
using IndexRuns = std::vector<IndexRun>;

// A selection that takes every dimension of a tensor of this rank as it is.
Select WholeOf(size_t rank);

// The shortest runs that list these indices; one of no elements where there are none.
IndexRuns RunsOf(absl::Span<const int64_t> indices);

// Applies `select` to `src`; the result is named after output 0 and `suffix`. Returns `src` itself
// if all of it is selected.
//   kUnimplemented    a folded constant of more than 2^24 elements
//   kInvalidArgument  as NodeContext::Emit()
absl::StatusOr<Operand> SelectOf(NodeContext& context, const Operand& src, Select select,
                                 absl::string_view suffix = "");

// The same along one dimension.
absl::StatusOr<Operand> SelectAlong(NodeContext& context, const Operand& src, int axis,
                                    IndexRuns runs, absl::string_view suffix = "");

// The same elements under other dims (of the same count).
absl::StatusOr<Operand> ReshapeOf(NodeContext& context, const Operand& src, Dims dims,
                                  absl::string_view suffix = "");

// Dimension i of the result is dimension order[i] of `src`, which is of f32.
absl::StatusOr<Operand> TurnedOf(NodeContext& context, const Operand& src, std::vector<int> order,
                                 absl::string_view suffix);

// One after the other along `axis`, which is in [0, rank). Constants alone are folded; they are in
// memory.
//   kInvalidArgument  dims that differ elsewhere, integers beside real numbers
//   kUnimplemented    types that do not go together
absl::StatusOr<Operand> ConcatOf(NodeContext& context, const std::vector<Operand>& srcs, int axis,
                                 absl::string_view suffix = "");

// dst[i..., j..., k...] = src[i..., indices[j...], k...], where the index is along `axis`, which is
// in [0, rank).
//   kInvalidArgument  a known index outside the source
//   kUnimplemented    computed indices of more elements than f32 counts
absl::StatusOr<Operand> GatherOf(NodeContext& context, const Operand& src, const Operand& indices,
                                 int axis, absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SHAPES_MOVES_H_
