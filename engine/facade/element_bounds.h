// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers that a network takes from a tensor that it is given: indices of embeddings, classes
// of losses. A pure function; thread-safe.
#ifndef ENGINE_FACADE_ELEMENT_BOUNDS_H_
#define ENGINE_FACADE_ELEMENT_BOUNDS_H_

#include <vector>

#include "engine/network/network.h"
#include "engine/trainer.h"

namespace tilewire {

// The bounds of the elements of the first `inputs` of the network's inputs, and of its targets, as
// far as they come as they are, moved or in another type, to what takes them. Indices that are
// computed have none.
std::vector<ElementBounds> BoundsOfElements(const network::Network& network, int inputs);

}  // namespace tilewire

#endif  // ENGINE_FACADE_ELEMENT_BOUNDS_H_
