// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a transposed matrix, as weights of a Gemm often are, would be computed and then
// transposed: it is the same product with its sides exchanged. Pure.
#ifndef ENGINE_NETWORK_TRAINING_TRANSPOSED_GRADIENTS_H_
#define ENGINE_NETWORK_TRAINING_TRANSPOSED_GRADIENTS_H_

#include <cstddef>
#include <vector>

#include "engine/network/network.h"

namespace tilewire::network {

// Rewrites such pairs among the operations from `first` on; `kept` are values that stay.
void ExchangeTransposedGradients(size_t first, const std::vector<ValueId>& kept, Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_TRANSPOSED_GRADIENTS_H_
