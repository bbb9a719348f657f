// SPDX-License-Identifier: Apache-2.0
//
// Functions of elements (engine/jit/elementwise.h) in a network: what they give for integers, and
// which shapes they join. Pure functions; thread-safe.
#ifndef ENGINE_GRAPH_ELEMENTWISE_H_
#define ENGINE_GRAPH_ELEMENTWISE_H_

#include <cstdint>
#include <optional>

#include "engine/jit/elementwise.h"
#include "engine/memory/dims.h"

namespace tilewire::graph {

using jit::ArityOf;
using jit::Elementwise;
using jit::Evaluate;

// nullopt: an overflow, a division by zero, or a function that integers do not have.
std::optional<int64_t> EvaluateInts(Elementwise::Function function, const int64_t* x);

// Numpy's rule; nullopt where the dims do not fit.
std::optional<Dims> Broadcast(const Dims& a, const Dims& b);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_ELEMENTWISE_H_
