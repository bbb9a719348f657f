// SPDX-License-Identifier: Apache-2.0
//
// The oracle: runs a network operation by operation, by plain loops in double precision, with every
// value in row-major order. It says what a network means, and shares no code with the engine's
// primitives, lowering, memory plan and executor; only the functions of one number (activations,
// elementwise functions, rounding to 8 bits) are the engine's scalar ones, in f32. For small
// networks in tests.
#ifndef TESTS_SUPPORT_ORACLE_INTERPRETER_H_
#define TESTS_SUPPORT_ORACLE_INTERPRETER_H_

#include <functional>
#include <vector>

#include "engine/network/network.h"
#include "tests/support/oracle/operations.h"

namespace tilewire::testing {

// Sees, and may change, what an operation gave.
using AfterOperation = std::function<void(const network::Operation& operation, Elements* elements)>;

// `inputs` in the network's order, of the sizes of its input values; parameters are as they are at
// first. Returns the network's outputs,
// each correct to f32's rounding of the functions above. `after`, unless it is null, is called with
// the result of each operation. Thread-safe.
std::vector<Elements> Interpret(const network::Network& network,
                                const std::vector<Elements>& inputs,
                                const AfterOperation& after = nullptr);

// The same with functions of elements in double precision, whose differences tell derivatives.
std::vector<Elements> InterpretInDouble(const network::Network& network,
                                        const std::vector<Elements>& inputs);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ORACLE_INTERPRETER_H_
