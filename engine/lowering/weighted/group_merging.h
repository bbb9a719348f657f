// SPDX-License-Identifier: Apache-2.0
//
// Merging groups of a convolution that are narrower than a block of channels, for the products of
// bf16 on matrix tiles (AMX), which are many times faster than vectors but multiply whole blocks
// only: as many neighbouring groups as fill them are computed as one group, with zeros as the
// weights between channels of different groups (runtime/packed_weights.cc writes them). An infinite
// activation therefore becomes NaN in the results of its neighbours. Elsewhere the lanes of a
// vector are of several groups without that (primitives/convolution/direct/grouped_generator.h).
// Pure function; thread-safe.
#ifndef ENGINE_LOWERING_WEIGHTED_GROUP_MERGING_H_
#define ENGINE_LOWERING_WEIGHTED_GROUP_MERGING_H_

#include "engine/base/precision.h"
#include "engine/cpu/isa.h"
#include "engine/memory/dims.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

// The dims of the weights [O, I/g, k...] as the primitive counts them: the same for one group,
// otherwise [g', O/g', I/g', k...] with g' merged groups.
Dims GroupedWeightsDims(const network::Convolution& convolution, Precision precision,
                        cpu::Isa max_isa);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_GROUP_MERGING_H_
