// SPDX-License-Identifier: Apache-2.0
//
// Which values of a network are kept as bf16 between their steps, with the precision bf16: those
// that convolutions alone read, as their source, which round it to bf16 whatever type it has, and
// that a step can write as bf16. A number that is rounded when it is stored is the one that was
// rounded when it was loaded, so that no answer changes by a bit. Neither outputs of the network
// nor addends of sums are among them.
//
// A maximum pooling, and a concatenation of whole blocks of channels, pass rounded numbers on: they
// have bf16 on both sides or on none.
//
// Decided from descriptors, before anything is lowered. Pure function; thread-safe.
#ifndef ENGINE_LOWERING_WEIGHTED_BF16_VALUES_H_
#define ENGINE_LOWERING_WEIGHTED_BF16_VALUES_H_

#include <vector>

#include "engine/lowering/plan/plan_builder.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

// Per value. `uses`: how many operations read each, an output of the network counting as one.
std::vector<bool> Bf16Values(const network::Network& network, const std::vector<int>& uses,
                             const LoweringContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_BF16_VALUES_H_
