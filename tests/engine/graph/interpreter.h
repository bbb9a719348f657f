// SPDX-License-Identifier: Apache-2.0
//
// Runs a network by plain loops in double precision: what it means, independent of the engine's
// primitives. For small networks in tests. Convolutions and poolings of 1 to 3 spatial dimensions;
// inner products; elementwise functions.
#ifndef TESTS_ENGINE_GRAPH_INTERPRETER_H_
#define TESTS_ENGINE_GRAPH_INTERPRETER_H_

#include <vector>

#include "engine/graph/network.h"

namespace tilewire::graph {

using Elements = std::vector<double>;  // row-major

// `inputs` in the network's order; gives the network's outputs.
std::vector<Elements> Interpret(const Network& network, const std::vector<Elements>& inputs);

}  // namespace tilewire::graph

#endif  // TESTS_ENGINE_GRAPH_INTERPRETER_H_
