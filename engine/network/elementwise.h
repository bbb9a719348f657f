// SPDX-License-Identifier: Apache-2.0
//
// Functions of elements (engine/functions/function.h) in a network: their results for integers, and
// the shapes that they broadcast. Pure functions; thread-safe.
#ifndef ENGINE_NETWORK_ELEMENTWISE_H_
#define ENGINE_NETWORK_ELEMENTWISE_H_

#include <cstdint>
#include <optional>

#include "engine/functions/function.h"
#include "engine/memory/dims.h"

namespace tilewire::network {

using functions::Elementwise;
using functions::EltwiseAlgorithm;
using Function = Elementwise::Function;

// Returns nullopt on an overflow, a division by zero, or a function not defined for integers.
std::optional<int64_t> EvaluateInts(Function function, const int64_t* x);

// Broadcasts by numpy's rule; returns nullopt if the dims do not fit.
std::optional<Dims> Broadcast(const Dims& a, const Dims& b);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_ELEMENTWISE_H_
