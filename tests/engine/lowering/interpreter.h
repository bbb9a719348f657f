// SPDX-License-Identifier: Apache-2.0
//
// The oracle of the tests of lowering: runs a network operation by operation, with every value in
// row-major order in memory of its own, every primitive by its reference, and fused steps by plain
// loops. Shares no code with lowering, memory plan or executor.
#ifndef TESTS_ENGINE_LOWERING_INTERPRETER_H_
#define TESTS_ENGINE_LOWERING_INTERPRETER_H_

#include <vector>

#include "engine/graph/network.h"

namespace tilewire::graph {

// One vector per output of the network. Ends the process where a reference refuses.
std::vector<std::vector<float>> Interpret(const Network& network,
                                          const std::vector<std::vector<float>>& inputs);

}  // namespace tilewire::graph

#endif  // TESTS_ENGINE_LOWERING_INTERPRETER_H_
