// SPDX-License-Identifier: Apache-2.0
//
// The visit to nodes that appends their operations to a network: those of the main graph, and those
// of graphs in attributes (NodeContext::Visit()).
#ifndef ENGINE_GRAPH_NODE_VISIT_H_
#define ENGINE_GRAPH_NODE_VISIT_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

// Builds every node that is not folded. Errors are those of BuildNetwork().
absl::Status VisitNodes(const std::vector<Node>& nodes, const ModelGraph& graph,
                        std::vector<Operand>* tensors, Network* network,
                        const Repetition& repetition = {});

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_NODE_VISIT_H_
