// SPDX-License-Identifier: Apache-2.0
//
// A model's nodes and tensors after reading and checking: every name resolved, nodes in an order in
// which they can run, calls of the file's functions replaced by what the functions hold. Immutable
// once built.
#ifndef ENGINE_ONNX_FILE_MODEL_GRAPH_H_
#define ENGINE_ONNX_FILE_MODEL_GRAPH_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/memory/dims.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/element_type.h"
#include "engine/onnx/file/node.h"
#include "engine/onnx/file/onnx_file.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

// The names of constants that the whole room uses.
using network::Constant;
using network::ConstantPtr;
using network::HeldFloats;
using network::InMemory;
using network::MakeFloats;
using network::MakeInts;

// A graph input or output as the file declares it; -1 for an open dimension.
struct DeclaredTensor {
  TensorId id = kNoTensor;
  DataType type = DataType::kF32;
  bool has_shape = false;  // else `dims` says nothing
  Dims dims;
  std::vector<std::string> symbols;  // the names of open dimensions, "" where there is none
};

struct ModelGraph {
  // The nodes point into these.
  std::unique_ptr<onnx::GraphProto> proto;  // without initializers
  std::vector<onnx::FunctionProto> functions;
  std::deque<onnx::FunctionProto> compositions;  // of operators that are written as others
  std::deque<onnx::NodeProto> rewritten;         // of functions, for one call

  std::vector<std::string> tensor_names;   // by TensorId
  std::vector<ConstantPtr> initializers;   // by TensorId; null for other tensors
  std::vector<bool> is_read;               // by TensorId: by a node, or as an output
  std::vector<ElementType> element_types;  // by TensorId (element_types.h)
  std::vector<Node> nodes;                 // topological order
  std::vector<DeclaredTensor> inputs;      // without those that have an initializer
  std::vector<DeclaredTensor> outputs;
  int64_t weights_bytes = 0;  // of all initializers
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_MODEL_GRAPH_H_
