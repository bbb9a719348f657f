// SPDX-License-Identifier: Apache-2.0
//
// Joins neighbouring steps of a plan whose intermediate tensors are too large for the cache: each
// such chain becomes one step that runs it band by band (band_plan.h).
#ifndef ENGINE_LOWERING_BANDS_BAND_FUSION_H_
#define ENGINE_LOWERING_BANDS_BAND_FUSION_H_

#include "absl/status/status.h"
#include "engine/lowering/bands/band_plan.h"
#include "engine/lowering/plan/primitive_request.h"
#include "engine/runtime/plan.h"

namespace tilewire::lowering {

// Call before memory is planned: the intermediate tensors of a chain need no buffer any more. A
// chain that is not worth it, or that some primitive does not take, stays as it is; any other error
// of `create` is returned.
absl::Status FuseBands(const PrimitiveRequests& requests, const BandLimits& limits,
                       RequestPrimitive create, runtime::Plan* plan);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_BANDS_BAND_FUSION_H_
