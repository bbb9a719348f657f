// SPDX-License-Identifier: Apache-2.0
//
// One ONNX node with its names resolved to tensor ids, and typed access to its attributes.
// Immutable.
#ifndef ENGINE_ONNX_FILE_NODE_H_
#define ENGINE_ONNX_FILE_NODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/memory/dims.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

struct Body;

using TensorId = int;
constexpr TensorId kNoTensor = -1;  // an optional input or output that is left out

class Node {
 public:
  // `scope` comes before the name of a node that is not in the main graph.
  Node(const onnx::NodeProto* proto, int index, int64_t opset, std::string scope = "")
      : proto_(proto), index_(index), opset_(opset), scope_(std::move(scope)) {}

  std::vector<TensorId> inputs, outputs;
  // The graphs in its attributes, by the attribute's name, and the tensors outside them that they
  // read; also those that other attributes name, which the node reads.
  std::map<std::string, std::shared_ptr<const Body>> bodies;
  std::vector<TensorId> captures;

  // Whether it has that input or output: some are optional.
  bool HasInput(size_t i) const { return i < inputs.size() && inputs[i] != kNoTensor; }
  bool HasOutput(size_t i) const { return i < outputs.size() && outputs[i] != kNoTensor; }
  // The first connected output; every node has one.
  TensorId FirstOutput() const {
    size_t i = 0;
    while (!HasOutput(i)) ++i;
    return outputs[i];
  }

  const onnx::NodeProto& proto() const { return *proto_; }
  const std::string& op() const { return proto_->op_type(); }
  int64_t opset() const { return opset_; }  // of its domain; 0: the file imports none
  // The node's name, or "#<position in the file>" where it has none.
  std::string name() const;
  // "node 'conv1' (Conv of ai.onnx, opset 13)", for messages.
  std::string Describe() const;
  // Errors that begin with Describe(): kInvalidArgument, kUnimplemented and kResourceExhausted.
  template <typename... Parts>
  absl::Status Invalid(const Parts&... what) const {
    return InvalidArgument(Describe(), ": ", what...);
  }
  template <typename... Parts>
  absl::Status Unimplemented(const Parts&... what) const {
    return tilewire::Unimplemented(Describe(), ": ", what...);
  }
  template <typename... Parts>
  absl::Status TooLarge(const Parts&... what) const {
    return ResourceExhausted(Describe(), ": ", what...);
  }

  bool HasAttribute(absl::string_view name) const { return Find(name) != nullptr; }
  // The attribute, or `absent` if the node does not have it. kInvalidArgument: it has another type.
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t absent) const;
  absl::StatusOr<float> Float(absl::string_view name, float absent) const;
  absl::StatusOr<std::string> String(absl::string_view name, absl::string_view absent) const;
  // The same, which must be one of `known`, else kInvalidArgument.
  absl::StatusOr<std::string> OneOf(absl::string_view name, absl::string_view absent,
                                    absl::Span<const absl::string_view> known) const;
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name,
                                            std::vector<int64_t> absent) const;
  // nullptr if the node does not have it.
  absl::StatusOr<const onnx::TensorProto*> Tensor(absl::string_view name) const;
  absl::StatusOr<const onnx::SparseTensorProto*> SparseTensor(absl::string_view name) const;
  absl::StatusOr<std::vector<float>> Floats(absl::string_view name) const;
  absl::StatusOr<std::vector<std::string>> Strings(absl::string_view name) const;

  // kInvalidArgument: an attribute that is given twice, or is not in `known` (names separated by
  // blanks).
  absl::Status CheckAttributes(absl::string_view known) const;

 private:
  const onnx::AttributeProto* Find(absl::string_view name) const;
  absl::StatusOr<const onnx::AttributeProto*> FindTyped(
      absl::string_view name, onnx::AttributeProto::AttributeType type) const;

  const onnx::NodeProto* proto_;
  int index_;
  int64_t opset_;
  std::string scope_;
};

// A graph in an attribute, whose names are resolved in its own scope and in those around it.
struct Body {
  std::vector<Node> nodes;  // in an order in which they can run
  std::vector<TensorId> inputs, outputs;
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_FILE_NODE_H_
