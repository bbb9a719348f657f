// SPDX-License-Identifier: Apache-2.0
//
// Views that operations read by their strides, where others would need a copy. Pure functions.
#ifndef ENGINE_LOWERING_PLAN_STRIDED_VIEW_H_
#define ENGINE_LOWERING_PLAN_STRIDED_VIEW_H_

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"

namespace tilewire::lowering {

// The elements of `desc`, in logical row-major order, under other dims.
//   kUnimplemented  it has blocks, or strides that do not lead to them
//   kInternal       `dims` have another number of elements
absl::StatusOr<MemoryDesc> StridedView(const MemoryDesc& desc, const Dims& dims);

// A layout of the operation's result for the only operation that reads it, if that is a transpose
// which leaves the last dimension where it is: the transpose is then a view. Else row-major.
absl::StatusOr<MemoryDesc> ResultDesc(const OperationContext& context);

// Whether all operations that read the value follow its strides, or are views of it that such
// operations read.
bool IsReadByStrides(const OperationContext& context, ValueId value);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_STRIDED_VIEW_H_
