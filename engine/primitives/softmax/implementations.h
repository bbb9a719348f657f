// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_

#include "engine/primitives/softmax/softmax.h"

namespace tilewire::softmax {

// Generated code (kernels/softmax_rows.h) for dense tensors whose axis is the innermost dimension
// in memory.
TILEWIRE_ROW(SoftmaxDesc, Rows);

// Rows of a few elements, the same: as many rows as a vector has lanes, side by side. Rows calls it
// where it is meant to run.
TILEWIRE_CREATE(SoftmaxDesc, Narrow);
constexpr int64_t MostNarrow(int lanes) { return lanes / 2; }  // elements of such a row

// Generated code for plain dense tensors with the axis elsewhere.
TILEWIRE_ROW(SoftmaxDesc, Columns);

// The gradient of softmax and of logsoftmax in generated code, where the tensors are dense in one
// plain layout.
TILEWIRE_ROW(SoftmaxDesc, LinesBackward);

// Another row, between reorders of the tensors whose layouts none takes. Before the reference.
TILEWIRE_ROW(SoftmaxDesc, Reordered);

TILEWIRE_ROW(SoftmaxDesc, Reference);

TILEWIRE_ROW(SoftmaxDesc, ReferenceBackward);

// Backward, without code.
PrimitiveInfo BackwardInfoOf(const Request<SoftmaxDesc>& request);

// kUnimplemented  it is not softmax itself, as generated rows compute it
absl::Status RequireSoftmax(const SoftmaxDesc& desc);

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
