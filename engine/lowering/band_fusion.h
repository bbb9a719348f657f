// SPDX-License-Identifier: Apache-2.0
//
// Neighbouring steps of a plan whose tensors in between are too large for the cache become one step
// that runs them band by band (row_bands.h).
#ifndef ENGINE_LOWERING_BAND_FUSION_H_
#define ENGINE_LOWERING_BAND_FUSION_H_

#include "absl/status/status.h"
#include "engine/runtime/plan.h"
#include "engine/runtime/row_bands.h"

namespace tilewire::runtime {

// Before memory is planned: a tensor between two links needs no buffer any more. Errors other than
// a chain that is not worth it or that a primitive does not take are those of `create`.
absl::Status FuseChains(const PrimitiveRequests& requests, const BandLimits& limits,
                        RequestPrimitive create, Plan* plan);

}  // namespace tilewire::runtime

#endif  // ENGINE_LOWERING_BAND_FUSION_H_
