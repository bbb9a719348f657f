// SPDX-License-Identifier: Apache-2.0
//
// An order in which nodes can run.
#ifndef ENGINE_ONNX_FILE_NODE_ORDER_H_
#define ENGINE_ONNX_FILE_NODE_ORDER_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/onnx/file/node.h"

namespace tilewire::reader {

// Sorts nodes so that each comes after those that compute what it reads. Among nodes that can run,
// the one that comes first in `nodes` runs first. kInvalidArgument: a cycle; the message names a
// node of it, or one that depends on it.
absl::Status OrderNodes(std::vector<Node>* nodes);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_NODE_ORDER_H_
