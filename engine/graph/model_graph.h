// SPDX-License-Identifier: Apache-2.0
//
// A model's nodes and tensors after reading and checking: every name resolved, nodes in an order in
// which they can run. Immutable once built.
#ifndef ENGINE_GRAPH_MODEL_GRAPH_H_
#define ENGINE_GRAPH_MODEL_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/byte_source.h"
#include "engine/graph/constant.h"
#include "engine/graph/node.h"
#include "engine/memory/dims.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::graph {

// A graph input or output as the file declares it; -1 for an open dimension.
struct DeclaredTensor {
  TensorId id = kNoTensor;
  Dims dims;
};

struct ModelGraph {
  std::unique_ptr<onnx::GraphProto> proto;  // what the nodes point into; holds no initializer
  std::vector<std::string> tensor_names;    // by TensorId
  std::vector<ConstantPtr> initializers;    // by TensorId; null for what is computed or given
  std::vector<Node> nodes;                  // topological order
  std::vector<DeclaredTensor> inputs;       // without those that an initializer fixes
  std::vector<DeclaredTensor> outputs;
  int64_t weights_bytes = 0;  // of all initializers
};

// What a file holds, before its names are resolved.
struct FileContents {
  std::unique_ptr<onnx::GraphProto> graph;
  std::vector<ConstantPtr> initializers;
  int64_t opset = 0;                              // of the default domain
  std::map<std::string, int64_t> foreign_opsets;  // of other domains
};

// Reads a ModelProto. `model_path` locates external data; empty refuses it.
//   kInvalidArgument  not ONNX, truncated, or a tensor that tensor_reader.h refuses
//   kUnimplemented    an opset that is not supported
absl::StatusOr<FileContents> ReadModelFile(const ByteSource& source, const std::string& model_path);

// Resolves names, checks and orders.
//   kInvalidArgument  no input or output, names that are dangling, duplicate or empty, cycles
//   kUnimplemented    an operator or domain that is not supported, inputs and outputs that are no
//   f32 tensors
absl::StatusOr<ModelGraph> BuildModelGraph(FileContents contents);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_MODEL_GRAPH_H_
