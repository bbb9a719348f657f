// SPDX-License-Identifier: Apache-2.0
//
// From a file to its graph.
#ifndef ENGINE_ONNX_GRAPH_BUILDER_H_
#define ENGINE_ONNX_GRAPH_BUILDER_H_

#include "absl/status/statusor.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/file/onnx_file.h"

namespace tilewire::reader {

// Resolves names, and checks and orders the nodes.
//   kInvalidArgument  no input or output, names that are dangling, duplicate or empty, cycles,
//                     functions that call themselves or hold too much
//   kUnimplemented    everything that is not supported in one message (problems.h): the file's
//                     problems, operators and domains, inputs and outputs that are not tensors of
//                     numbers or truth values
absl::StatusOr<ModelGraph> BuildModelGraph(OnnxFile file);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_GRAPH_BUILDER_H_
