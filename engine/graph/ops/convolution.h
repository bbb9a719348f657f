// SPDX-License-Identifier: Apache-2.0
//
// The convolution that a node's attributes describe, for the operators that contain one.
#ifndef ENGINE_GRAPH_OPS_CONVOLUTION_H_
#define ENGINE_GRAPH_OPS_CONVOLUTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/lowering.h"

namespace tilewire::graph {

// Of `src` [N, C, spatial...] with weights [O, C/groups, k...] and a bias [O], or none.
//   kInvalidArgument  shapes or attributes that do not fit each other
absl::StatusOr<ValueId> EmitConvolution(NodeContext& context, ValueId src,
                                        const ConstantPtr& weights, std::vector<float> bias,
                                        absl::string_view suffix = "");

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_CONVOLUTION_H_
