// SPDX-License-Identifier: Apache-2.0
//
// Networks of images whose operations read each other at random, so that values are read several
// times, are parts of concatenations, and are saved while others are written over them.
#ifndef TESTS_ENGINE_NETWORK_TRAINING_RANDOM_FORWARD_H_
#define TESTS_ENGINE_NETWORK_TRAINING_RANDOM_FORWARD_H_

#include <cstdint>

#include "engine/network/network.h"

namespace tilewire::testing {

// One output, which all values lead to. The same number gives the same network.
network::Network RandomForward(uint64_t number);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_NETWORK_TRAINING_RANDOM_FORWARD_H_
