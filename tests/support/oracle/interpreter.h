// SPDX-License-Identifier: Apache-2.0
//
// The oracle: runs a network operation by operation, by plain loops in double precision, with every
// value in row-major order. It says what a network means, and shares no code with the engine's
// primitives, lowering, memory plan and executor; only the functions of one number (activations,
// elementwise functions, rounding to 8 bits) are the engine's scalar ones, in f32. For small
// networks in tests.
#ifndef TESTS_SUPPORT_ORACLE_INTERPRETER_H_
#define TESTS_SUPPORT_ORACLE_INTERPRETER_H_

#include <vector>

#include "engine/graph/network.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {

// `inputs` in the network's order, of the sizes of its input values. Returns the network's outputs,
// each correct to f32's rounding of the functions above. Thread-safe.
std::vector<Elements> Interpret(const graph::Network& network, const std::vector<Elements>& inputs);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ORACLE_INTERPRETER_H_
