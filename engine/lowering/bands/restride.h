// SPDX-License-Identifier: Apache-2.0
//
// Gives a tensor the strides of a larger one after the steps that write and read it were chosen, so
// that it can become a part of the larger one and needs no copy. Thread-compatible.
#ifndef ENGINE_LOWERING_BANDS_RESTRIDE_H_
#define ENGINE_LOWERING_BANDS_RESTRIDE_H_

#include "absl/status/status.h"
#include "engine/lowering/plan/plan_draft.h"

namespace tilewire::lowering {

// Re-strides `place` and everything that shares its buffer: creates again, through `create`, the
// primitives of the steps that write or read it. Either all of this happens or nothing changes.
//   kUnimplemented  a step whose primitive cannot take the strides, or a value that shares the
//                   buffer in another layout
//   and what `create` returns
absl::Status Restride(const Place& place, const Dims& strides, RequestPrimitive create,
                      PlanDraft* draft);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_BANDS_RESTRIDE_H_
