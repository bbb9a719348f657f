// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an ONNX file in memory, and where in them the nodes and initializers of its graph
// lie, so that a changed file keeps all else byte for byte. Immutable. Source: ONNX, ModelProto.
#ifndef ENGINE_TUNING_MODEL_SOURCE_H_
#define ENGINE_TUNING_MODEL_SOURCE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/dims.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::tuning {

// A field of the file, with its tag.
struct FieldPlace {
  int64_t begin = 0, end = 0;
  int64_t payload = 0;  // where its contents begin; they end with it
};

struct SourceNode {
  onnx::NodeProto proto;
  FieldPlace place;
};

struct SourceInitializer {
  Dims dims;
  int type = 0;  // onnx::TensorProto::DataType
  FieldPlace place;
};

class ModelSource {
 public:
  //   kNotFound         no such file
  //   kInvalidArgument  malformed, an opset of the default domain below 13, initializers in other
  //                     files, nodes that stand before what they read
  static absl::StatusOr<ModelSource> Read(const std::string& path);
  // The same of bytes in memory; `name` is for messages.
  static absl::StatusOr<ModelSource> Parse(std::string bytes, const std::string& name);

  const std::string& bytes() const { return bytes_; }
  const FieldPlace& graph() const { return graph_; }
  const std::vector<SourceNode>& nodes() const { return nodes_; }
  const absl::flat_hash_map<std::string, SourceInitializer>& initializers() const {
    return initializers_;
  }
  // Null where there is none of this name.
  const SourceInitializer* Initializer(const std::string& name) const;
  // The elements of an initializer that exists, as floats. Errors: those of reader::TensorReader.
  absl::StatusOr<std::vector<float>> LoadFloats(const std::string& name) const;

  bool IsInput(const std::string& name) const { return inputs_.contains(name); }
  bool IsOutput(const std::string& name) const { return outputs_.contains(name); }
  // Whether a graph in a node reads it by name.
  bool IsReadInside(const std::string& name) const { return read_inside_.contains(name); }
  // The names of all tensors.
  const absl::flat_hash_set<std::string>& names() const { return names_; }
  // The node that computes a tensor; -1: none.
  int ProducerOf(const std::string& name) const;
  // The nodes that read a tensor, in their order, each once for every input that is it.
  const std::vector<int>& ReadersOf(const std::string& name) const;

 private:
  absl::Status ReadFields();
  absl::Status ReadGraph();
  absl::Status AddNode(const FieldPlace& place);
  absl::Status AddInitializer(const FieldPlace& place);
  absl::Status AddName(const FieldPlace& place, absl::flat_hash_set<std::string>* names);
  absl::Status CheckOrder() const;
  void AddReadInside(const onnx::NodeProto& node);
  absl::string_view PayloadOf(const FieldPlace& place) const;

  std::string name_, bytes_;
  FieldPlace graph_;
  std::vector<SourceNode> nodes_;
  absl::flat_hash_map<std::string, SourceInitializer> initializers_;
  absl::flat_hash_set<std::string> inputs_, outputs_, read_inside_, names_;
  absl::flat_hash_map<std::string, int> producers_;
  absl::flat_hash_map<std::string, std::vector<int>> readers_;
  int64_t opset_ = 0;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_MODEL_SOURCE_H_
