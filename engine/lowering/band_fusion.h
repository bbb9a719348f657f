// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring steps of a plan whose tensors in between are too large for the cache become one step
// that runs them band by band (row_bands.h).
#ifndef ENGINE_LOWERING_BAND_FUSION_H_
#define ENGINE_LOWERING_BAND_FUSION_H_

#include "absl/status/status.h"
#include "engine/runtime/plan.h"
#include "engine/runtime/row_bands.h"

namespace tilewire::lowering {

// Call before memory is planned: a tensor between two steps of a band needs no buffer any more. A
// chain that is not worth it, or that some primitive does not take, stays as it is; any other error
// of `create` is returned.
absl::Status FuseBands(const runtime::PrimitiveRequests& requests,
                       const runtime::BandLimits& limits, runtime::RequestPrimitive create,
                       runtime::Plan* plan);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_BAND_FUSION_H_
