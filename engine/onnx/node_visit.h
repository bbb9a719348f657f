// SPDX-License-Identifier: Apache-2.0
//
// The visit to nodes that appends their operations to a network: those of the main graph, and those
// of graphs in attributes (NodeContext::Visit()).
#ifndef ENGINE_ONNX_NODE_VISIT_H_
#define ENGINE_ONNX_NODE_VISIT_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// One node, which is not folded. kUnimplemented: the use is not supported, or an input that must be
// known is computed; what was appended until then is of no use.
absl::Status BuildNode(const Node& node, const ModelGraph& graph, std::vector<Operand>* tensors,
                       network::Network* network, const Repetition& repetition);

// Builds every node that is not folded. Errors are those of BuildNetwork().
absl::Status VisitNodes(const std::vector<Node>& nodes, const ModelGraph& graph,
                        std::vector<Operand>* tensors, network::Network* network,
                        const Repetition& repetition = {});

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_NODE_VISIT_H_
