// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a file that training may change: floating-point initializers, and Constant nodes
// of several real numbers, that operators take as weights. The rows of the table of operators name
// the inputs that may be such (OpRow::trains). An initializer also learns through nodes that only
// move its elements, and not if any of its readers takes it for an argument, a shape or a bound.
// Pure functions.
#ifndef ENGINE_ONNX_TRAINABLE_H_
#define ENGINE_ONNX_TRAINABLE_H_

#include <vector>

#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// By TensorId: the tensor is an initializer of the main graph, or the output of a Constant node of
// it, and may learn. `folded` is what FoldConstants() gave. What graphs in attributes read does not
// learn, and neither do sparse tensors.
std::vector<bool> TrainableTensors(const ModelGraph& graph, const std::vector<Operand>& folded);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_TRAINABLE_H_
