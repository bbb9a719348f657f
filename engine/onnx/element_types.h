// SPDX-License-Identifier: Apache-2.0
//
// The element types of a model's tensors. ONNX gives them by the nodes alone, whatever the shapes
// are; the runtime keeps them in part only, because f32 holds several of them. Pure functions;
// thread-safe.
#ifndef ENGINE_ONNX_ELEMENT_TYPES_H_
#define ENGINE_ONNX_ELEMENT_TYPES_H_

#include <vector>

#include "engine/onnx/file/model_graph.h"

namespace tilewire::reader {

// By TensorId, of the graphs in attributes too. The nodes are in an order in which they can run.
std::vector<ElementType> ElementTypes(const ModelGraph& graph);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_ELEMENT_TYPES_H_
