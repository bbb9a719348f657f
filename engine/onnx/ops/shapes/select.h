// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements without computing: slices, splits, pads, repeats, gathers, nearest
// resizing. Each maps every index of its result to an index of its source, dimension by dimension
// (Select in movement.h). A constant is folded; for a computed tensor an operation is emitted.
#ifndef ENGINE_ONNX_OPS_SHAPES_SELECT_H_
#define ENGINE_ONNX_OPS_SHAPES_SELECT_H_

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

// The same elements under other dims (of the same count).
absl::StatusOr<Operand> ReshapeOf(NodeContext& context, const Operand& src, Dims dims,
                                  absl::string_view suffix = "");

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_SHAPES_SELECT_H_
