// SPDX-License-Identifier: Apache-2.0
//
// How much a network computes, about: multiplications, and elements that are read and written. Pure
// function.
#ifndef TESTS_FUZZ_NETWORKS_WORK_H_
#define TESTS_FUZZ_NETWORKS_WORK_H_

#include <cstdint>

#include "engine/network/network.h"

namespace tilewire::testing {

int64_t WorkOf(const network::Network& network);

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_WORK_H_
