// SPDX-License-Identifier: Apache-2.0
//
// From the names in a file to tensor ids. The main graph, functions and graphs in attributes are
// scopes: a graph in an attribute sees the names around it, a function only its own. A call of one
// of the file's functions becomes the function's nodes; If and Loop keep their graphs (Body in
// node.h). Source: ONNX's IR document, "Names Within a Graph" and "Functions".
#ifndef ENGINE_ONNX_NODE_EXPANSION_H_
#define ENGINE_ONNX_NODE_EXPANSION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/file/node.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/ops/op_row.h"
#include "engine/onnx/problems.h"

namespace tilewire::reader {

// Adds to the tensors of a ModelGraph. Thread-compatible.
class NodeExpansion {
 public:
  using Arguments = std::map<std::string, onnx::AttributeProto>;
  using NodeProtos = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  struct Scope {
    const Scope* outer = nullptr;  // whose names are seen here, too
    std::string prefix;            // of names that are added to the graph
    const Opsets* opsets = nullptr;
    const Arguments* arguments = nullptr;  // of the call of the function that this is in
    // kNoTensor: an input of a function that its call leaves out.
    absl::flat_hash_map<std::string, TensorId> ids;
    // Names that a node here is to compute, under the ids that a call gave them.
    absl::flat_hash_map<std::string, TensorId> results;
  };

  // Unsupported nodes are added to `problems`. All three outlive this.
  NodeExpansion(const std::vector<onnx::FunctionProto>* functions, ModelGraph* graph,
                Problems* problems);

  // A new tensor of the graph. kInvalidArgument: the name is empty or defined already.
  absl::StatusOr<TensorId> Define(const std::string& name, Scope* scope);
  // kInvalidArgument: no scope that is seen defines it.
  absl::StatusOr<TensorId> Resolve(const std::string& name, const Scope& scope) const;
  // Appends nodes for `protos`, all names resolved.
  absl::Status Expand(const NodeProtos& protos, Scope* scope, std::vector<Node>* nodes);

 private:
  const onnx::FunctionProto* FindFunction(const Node& node) const;
  absl::StatusOr<const onnx::FunctionProto*> CompositionOf(const Node& node, const OpRow& row);
  absl::StatusOr<const onnx::NodeProto*> WithArguments(const onnx::NodeProto& proto,
                                                       const Scope& scope);
  absl::Status DefineOutputs(Node* node, Scope* scope);
  absl::Status ConnectInputs(Node* node, const Scope& scope) const;
  absl::Status AddBodies(Node* node, const Scope& scope);
  absl::Status CaptureNamed(Node* node, const Scope& scope) const;
  absl::Status AddInitializers(const onnx::GraphProto& graph, Scope* scope);
  absl::Status Inline(const Node& call, const onnx::FunctionProto& function, const Scope& scope,
                      std::vector<Node>* nodes);
  absl::Status Bind(const Node& call, const onnx::FunctionProto& function, Scope* inner,
                    std::vector<Node>* nodes);
  std::string Unique(std::string name);
  // kInvalidArgument: `nodes` with names in a scope of this prefix are too much.
  absl::Status Charge(const Node& node, int64_t nodes, const std::string& prefix);

  absl::flat_hash_map<std::string, const onnx::FunctionProto*> functions_;  // by FunctionKey()
  ModelGraph& graph_;
  Problems& problems_;
  absl::flat_hash_map<std::string, const onnx::FunctionProto*> compositions_;  // by text
  absl::flat_hash_set<std::string> names_;  // of all tensors of the graph
  std::vector<const onnx::FunctionProto*> active_;
  int64_t inlined_ = 0;  // nodes
  int64_t copied_ = 0;   // bytes of nodes and names
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_NODE_EXPANSION_H_
