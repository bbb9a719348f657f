// SPDX-License-Identifier: Apache-2.0
//
// Merging groups of a convolution that are narrower than a block of channels. By themselves they
// would be computed in blocks of their own, to which every channel has to be copied. Instead, as
// many neighbouring groups as fill whole blocks are computed as one group, with zeros as the
// weights between channels of different groups (runtime/group_packing.h writes them). An infinite
// activation therefore becomes NaN in the results of its neighbours. Pure function; thread-safe.
#ifndef ENGINE_LOWERING_GROUP_MERGING_H_
#define ENGINE_LOWERING_GROUP_MERGING_H_

#include "engine/cpu/isa.h"
#include "engine/graph/network.h"
#include "engine/memory/dims.h"

namespace tilewire::lowering {

// The dims of the weights [O, I/g, k...] as the primitive counts them: the same for one group,
// otherwise [g', O/g', I/g', k...] with g' merged groups. Blocks are those of `max_isa`.
Dims GroupedWeightsDims(const graph::Convolution& convolution, cpu::Isa max_isa);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_GROUP_MERGING_H_
