// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/graph_builder.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/element_types.h"
#include "engine/onnx/file/node_order.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/node_expansion.h"

namespace tilewire::reader {
namespace {

std::string Quoted(absl::string_view name) { return absl::StrCat("'", name.substr(0, 200), "'"); }

// Marks what nodes read, those of graphs in attributes included.
void MarkRead(const std::vector<Node>& nodes, std::vector<bool>* is_read) {
  const auto mark = [is_read](const std::vector<TensorId>& ids) {
    for (TensorId id : ids) {
      if (id != kNoTensor) (*is_read)[id] = true;
    }
  };
  for (const Node& node : nodes) {
    mark(node.inputs);
    mark(node.captures);
    for (const auto& [name, body] : node.bodies) {
      mark(body->outputs);
      MarkRead(body->nodes, is_read);
    }
  }
}

// Builds a ModelGraph step by step; each step checks what it resolves.
class Builder {
 public:
  explicit Builder(OnnxFile file) : file_(std::move(file)) { main_.opsets = &file_.opsets; }

  absl::StatusOr<ModelGraph> Build() {
    ABSL_RETURN_IF_ERROR(AddInitializers());
    ABSL_RETURN_IF_ERROR(AddInputs());
    const absl::Status nodes = expansion_.Expand(file_.graph->node(), &main_, &graph_.nodes);
    const absl::Status outputs = AddOutputs();
    if (!file_.problems.empty()) return file_.problems.AsStatus();
    ABSL_RETURN_IF_ERROR(nodes);
    ABSL_RETURN_IF_ERROR(outputs);
    ABSL_RETURN_IF_ERROR(OrderNodes(&graph_.nodes));
    graph_.is_read.resize(graph_.tensor_names.size());
    MarkRead(graph_.nodes, &graph_.is_read);
    for (const DeclaredTensor& output : graph_.outputs) graph_.is_read[output.id] = true;
    graph_.element_types = ElementTypes(graph_);
    graph_.proto = std::move(file_.graph);
    graph_.functions = std::move(file_.functions);
    return std::move(graph_);
  }

 private:
  absl::Status AddInitializers() {
    for (ConstantPtr& constant : file_.initializers) {
      ABSL_ASSIGN_OR_RETURN(const TensorId id, expansion_.Define(constant->name, &main_));
      graph_.weights_bytes += constant->count() * network::BytesOfElement(*constant);
      graph_.initializers[id] = std::move(constant);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeclaredTensor> Declared(TensorId id, const onnx::ValueInfoProto& declared,
                                          absl::string_view role) {
    const std::string who = absl::StrCat(role, " ", Quoted(declared.name()));
    if (!declared.type().has_tensor_type()) return Unimplemented(who, " is not a tensor");
    const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
    const std::optional<DataType> elements = TypeOfElements(type.elem_type());
    if (!elements) {
      return Unimplemented(who, " has ONNX element type ", ElementTypeText(type.elem_type()),
                           "; supported are numbers and BOOL");
    }
    if (type.shape().dim_size() > kMaxRank) return InvalidArgument(who, ": rank over 12");
    DeclaredTensor tensor{id, *elements, type.has_shape(), {}, {}};
    for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      // Exporters write 0 and -1 too where they mean an open dimension.
      tensor.dims.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
      tensor.symbols.push_back(dim.dim_param());
      if (dim.dim_value() < -1) {
        return InvalidArgument(who, ": negative dimension ", dim.dim_value());
      }
    }
    return tensor;
  }

  // One of a type that is not supported is a problem.
  absl::Status AddDeclared(absl::StatusOr<DeclaredTensor> declared,
                           std::vector<DeclaredTensor>* tensors) {
    if (absl::IsUnimplemented(declared.status())) {
      file_.problems.Add(declared.status());
      return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(tensors->emplace_back(), std::move(declared));
    return absl::OkStatus();
  }

  absl::Status AddInputs() {
    for (const onnx::ValueInfoProto& input : file_.graph->input()) {
      const auto known = main_.ids.find(input.name());
      // Before IR version 4 every initializer was an input as well; it is a constant here.
      if (known != main_.ids.end() && graph_.initializers[known->second] != nullptr) continue;
      ABSL_ASSIGN_OR_RETURN(const TensorId id, expansion_.Define(input.name(), &main_));
      ABSL_RETURN_IF_ERROR(AddDeclared(Declared(id, input, "input"), &graph_.inputs));
    }
    if (graph_.inputs.empty() && file_.problems.empty())
      return InvalidArgument("the model has no input");
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    absl::flat_hash_map<TensorId, int> seen;
    for (const onnx::ValueInfoProto& output : file_.graph->output()) {
      const auto id = main_.ids.find(output.name());
      if (id == main_.ids.end()) {
        return InvalidArgument("output ", Quoted(output.name()), " is defined nowhere");
      }
      if (++seen[id->second] > 1) {
        return InvalidArgument("output ", Quoted(output.name()), " is named twice");
      }
      ABSL_RETURN_IF_ERROR(AddDeclared(Declared(id->second, output, "output"), &graph_.outputs));
    }
    if (graph_.outputs.empty() && file_.problems.empty())
      return InvalidArgument("the model has no output");
    return absl::OkStatus();
  }

  OnnxFile file_;
  ModelGraph graph_;
  NodeExpansion expansion_{&file_.functions, &graph_, &file_.problems};
  NodeExpansion::Scope main_;
};

}  // namespace

absl::StatusOr<ModelGraph> BuildModelGraph(OnnxFile file) {
  return Builder(std::move(file)).Build();
}

}  // namespace tilewire::reader
