// SPDX-License-Identifier: Apache-2.0
//
// The layout of tensors of 8-bit integers that an operation makes of others, element by element.
#ifndef ENGINE_LOWERING_PLAN_INTEGER_LAYOUT_H_
#define ENGINE_LOWERING_PLAN_INTEGER_LAYOUT_H_

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"

namespace tilewire::lowering {

// The operation's result with the channels last, as convolutions and poolings of integers read
// them; in row-major order where `row_major` asks for that, and where none of these reads it, not
// even after operations that keep a layout, while its sources are in row-major order already.
absl::StatusOr<MemoryDesc> IntegerDesc(OperationContext& context, bool row_major = false);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_INTEGER_LAYOUT_H_
