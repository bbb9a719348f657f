// SPDX-License-Identifier: Apache-2.0
//
// A pass of training alone (passes/passes.h): to inference, scales and shifts are numbers.
#ifndef ENGINE_NETWORK_TRAINING_FUSE_ROW_PARAMETERS_H_
#define ENGINE_NETWORK_TRAINING_FUSE_ROW_PARAMETERS_H_

#include "engine/network/network.h"

namespace tilewire::network {

// A product of a layer normalization without scale and a computed row, and the sum of that and
// another one, become its scale and shift. A product alone stays: it has no shift.
void FuseRowParameters(Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_FUSE_ROW_PARAMETERS_H_
