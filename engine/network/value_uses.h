// SPDX-License-Identifier: Apache-2.0
//
// How many operations read each value of a network: sources, and the addends of fused sums. Pure
// functions; thread-safe.
#ifndef ENGINE_NETWORK_VALUE_USES_H_
#define ENGINE_NETWORK_VALUE_USES_H_

#include <vector>

#include "engine/network/network.h"

namespace tilewire::network {

// The chain of fused steps of an operation; null if its parameters have none.
const std::vector<FusedStep>* FusedSteps(const Operation& operation);
std::vector<FusedStep>* FusedSteps(Operation& operation);

// Adds `by` to the uses of each value that the operation reads, as often as it reads it.
void AddUses(const Operation& operation, int by, std::vector<int>* uses);

// Per value. An output of the network counts as one use more, and so does what a run for training
// leaves behind: gradients of parameters and statistics of the batch.
std::vector<int> ValueUses(const Network& network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_VALUE_USES_H_
