// SPDX-License-Identifier: Apache-2.0
//
// A pass of training alone (passes/passes.h): inference folds normalizations by known statistics
// into the convolutions before them.
#ifndef ENGINE_NETWORK_TRAINING_FUSE_NORMALIZATION_H_
#define ENGINE_NETWORK_TRAINING_FUSE_NORMALIZATION_H_

#include "engine/network/network.h"

namespace tilewire::network {

// A sum with a normalization by the statistics of the batch, and a relu, with or without a limit,
// of either, become a part of that normalization, if nothing else reads what was between.
void FuseNormalization(Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_FUSE_NORMALIZATION_H_
