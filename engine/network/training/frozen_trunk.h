// SPDX-License-Identifier: Apache-2.0
//
// The trunk of a network for training: what depends on no parameter that learns, as the layers
// before a head that is trained alone. Nothing before it has a gradient, so that it takes the
// passes of inference: normalizations are folded, and activations and sums fused.
#ifndef ENGINE_NETWORK_TRAINING_FROZEN_TRUNK_H_
#define ENGINE_NETWORK_TRAINING_FROZEN_TRUNK_H_

#include "engine/network/network.h"

namespace tilewire::network {

// Runs RunPasses() on the trunk of a network that has no gradients yet. Values are numbered anew;
// parameters stay, also those that nothing reads any more. Pure but for `network`.
void RunPassesOnTrunk(Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_FROZEN_TRUNK_H_
