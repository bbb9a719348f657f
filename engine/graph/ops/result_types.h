// SPDX-License-Identifier: Apache-2.0
//
// Which results are of integers or truth values by ONNX's rules. The runtime holds them in f32,
// where no type tells them from real numbers; division, powers and means do. Pure functions;
// thread-safe.
#ifndef ENGINE_GRAPH_OPS_RESULT_TYPES_H_
#define ENGINE_GRAPH_OPS_RESULT_TYPES_H_

#include "engine/graph/specialization.h"

namespace tilewire::graph {

// Whether output `i` of a node is. Without a rule of its own a node gives what its first input is.
bool GivesIntegers(const NodeContext& context, int i);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_RESULT_TYPES_H_
