// SPDX-License-Identifier: Apache-2.0
//
// What the functions of graph::Elementwise give for single numbers, and which shapes they join.
// Pure functions; thread-safe. NaN gives NaN where the formula of a function (network.h) does.
#ifndef ENGINE_GRAPH_ELEMENTWISE_H_
#define ENGINE_GRAPH_ELEMENTWISE_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "engine/graph/network.h"

namespace tilewire::graph {

// Sources that the function has: 1, 2 or 3.
int ArityOf(Elementwise::Function function);

// `x` holds ArityOf() numbers.
float Evaluate(const Elementwise& elementwise, const float* x);
// nullopt: an overflow, a division by zero, or a function that integers do not have.
std::optional<int64_t> EvaluateInts(Elementwise::Function function, const int64_t* x);

// Numpy's rule; nullopt where the dims do not fit.
std::optional<Dims> Broadcast(const Dims& a, const Dims& b);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_ELEMENTWISE_H_
