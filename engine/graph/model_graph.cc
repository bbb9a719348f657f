// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/model_graph.h"

#include <functional>
#include <optional>
#include <queue>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/onnx_types.h"
#include "engine/graph/ops/op_table.h"

namespace tilewire::graph {
namespace {

constexpr int kGiven = -1;  // an initializer or an input: no node produces it

std::string Quoted(absl::string_view name) { return absl::StrCat("'", name.substr(0, 200), "'"); }

int64_t BytesOfElement(const Constant& constant) {
  if (constant.is_float) return sizeof(float);
  return constant.integers == DataType::kS32 ? sizeof(int64_t) : SizeOf(constant.integers);
}

// Builds a ModelGraph step by step; each step checks what it resolves.
class Builder {
 public:
  explicit Builder(OnnxFile file) : file_(std::move(file)) {}

  absl::StatusOr<ModelGraph> Build() {
    ABSL_RETURN_IF_ERROR(AddInitializers());
    ABSL_RETURN_IF_ERROR(AddInputs());
    ABSL_RETURN_IF_ERROR(AddNodes());
    const absl::Status outputs = AddOutputs();
    if (!file_.findings.empty()) return file_.findings.AsStatus();
    ABSL_RETURN_IF_ERROR(ConnectNodes());
    ABSL_RETURN_IF_ERROR(outputs);
    ABSL_RETURN_IF_ERROR(Order());
    graph_.proto = std::move(file_.graph);
    return std::move(graph_);
  }

 private:
  // kInvalidArgument: the name is empty or defined already.
  absl::StatusOr<TensorId> Define(const std::string& name, int producer) {
    if (name.empty()) return absl::InvalidArgumentError("a tensor without a name");
    const auto [entry, inserted] =
        ids_.try_emplace(name, static_cast<TensorId>(graph_.tensor_names.size()));
    if (!inserted)
      return absl::InvalidArgumentError(absl::StrCat("tensor ", Quoted(name), " is defined twice"));
    graph_.tensor_names.push_back(name);
    graph_.initializers.push_back(nullptr);
    producers_.push_back(producer);
    return entry->second;
  }

  absl::Status AddInitializers() {
    for (ConstantPtr& constant : file_.initializers) {
      ABSL_ASSIGN_OR_RETURN(const TensorId id, Define(constant->name, kGiven));
      graph_.weights_bytes += constant->count() * BytesOfElement(*constant);
      graph_.initializers[id] = std::move(constant);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeclaredTensor> Declared(TensorId id, const onnx::ValueInfoProto& declared,
                                          absl::string_view role) {
    const std::string who = absl::StrCat(role, " ", Quoted(declared.name()));
    if (!declared.type().has_tensor_type())
      return absl::UnimplementedError(absl::StrCat(who, " is not a tensor"));
    const onnx::TypeProto::Tensor& type = declared.type().tensor_type();
    const std::optional<DataType> elements = TypeOfElements(type.elem_type());
    if (!elements) {
      return absl::UnimplementedError(absl::StrCat(who, " has ONNX element type ",
                                                   ElementTypeText(type.elem_type()),
                                                   "; supported are numbers and BOOL"));
    }
    if (type.shape().dim_size() > kMaxRank)
      return absl::InvalidArgumentError(absl::StrCat(who, ": rank over 12"));
    DeclaredTensor tensor{id, *elements, type.has_shape(), {}};
    for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
      // Exporters write 0 and -1 too where they mean an open dimension.
      tensor.dims.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : -1);
      if (dim.dim_value() < -1) {
        return absl::InvalidArgumentError(
            absl::StrCat(who, ": negative dimension ", dim.dim_value()));
      }
    }
    return tensor;
  }

  // One of a type that is not supported is a finding.
  absl::Status AddDeclared(absl::StatusOr<DeclaredTensor> declared,
                           std::vector<DeclaredTensor>* tensors) {
    if (absl::IsUnimplemented(declared.status())) {
      file_.findings.Add(declared.status());
      return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(tensors->emplace_back(), std::move(declared));
    return absl::OkStatus();
  }

  absl::Status AddInputs() {
    for (const onnx::ValueInfoProto& input : file_.graph->input()) {
      const auto known = ids_.find(input.name());
      // Before IR version 4 every initializer was an input as well; it is a constant here.
      if (known != ids_.end() && graph_.initializers[known->second] != nullptr) continue;
      ABSL_ASSIGN_OR_RETURN(const TensorId id, Define(input.name(), kGiven));
      ABSL_RETURN_IF_ERROR(AddDeclared(Declared(id, input, "input"), &graph_.inputs));
    }
    if (graph_.inputs.empty() && file_.findings.empty())
      return absl::InvalidArgumentError("the model has no input");
    return absl::OkStatus();
  }

  // 0 where the file imports none.
  int64_t OpsetOf(const std::string& domain) const {
    if (domain.empty() || domain == "ai.onnx") return file_.opset;
    const auto found = file_.foreign_opsets.find(domain);
    return found == file_.foreign_opsets.end() ? 0 : found->second;
  }

  absl::Status AddNodes() {
    for (const onnx::NodeProto& proto : file_.graph->node()) {
      const int index = static_cast<int>(graph_.nodes.size());
      Node& node = graph_.nodes.emplace_back(&proto, index, OpsetOf(proto.domain()));
      const absl::Status supported = CheckSupported(node);
      if (!supported.ok()) file_.findings.Add(node, supported);
      for (const std::string& output : proto.output()) {
        if (output.empty()) {
          node.outputs.push_back(kNoTensor);
          continue;
        }
        absl::StatusOr<TensorId> id = Define(output, index);
        if (!id.ok()) return node.Invalid(id.status().message());
        node.outputs.push_back(*id);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ConnectNodes() {
    for (Node& node : graph_.nodes) {
      for (const std::string& input : node.proto().input()) {
        if (input.empty()) {
          node.inputs.push_back(kNoTensor);
          continue;
        }
        const auto id = ids_.find(input);
        if (id == ids_.end())
          return node.Invalid(absl::StrCat("input ", Quoted(input), " is defined nowhere"));
        node.inputs.push_back(id->second);
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddOutputs() {
    absl::flat_hash_map<TensorId, int> seen;
    for (const onnx::ValueInfoProto& output : file_.graph->output()) {
      const auto id = ids_.find(output.name());
      if (id == ids_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", Quoted(output.name()), " is defined nowhere"));
      }
      if (++seen[id->second] > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", Quoted(output.name()), " is named twice"));
      }
      ABSL_RETURN_IF_ERROR(AddDeclared(Declared(id->second, output, "output"), &graph_.outputs));
    }
    if (graph_.outputs.empty() && file_.findings.empty())
      return absl::InvalidArgumentError("the model has no output");
    return absl::OkStatus();
  }

  // Kahn's algorithm; among nodes that can run, the one that comes first in the file runs first.
  absl::Status Order() {
    std::vector<std::vector<int>> consumers(graph_.nodes.size());
    std::vector<int> waits_for(graph_.nodes.size(), 0);
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (int i = 0; i < graph_.nodes.size(); ++i) {
      for (TensorId input : graph_.nodes[i].inputs) {
        if (input == kNoTensor || producers_[input] == kGiven) continue;
        consumers[producers_[input]].push_back(i);
        ++waits_for[i];
      }
      if (waits_for[i] == 0) ready.push(i);
    }
    std::vector<Node> ordered;
    while (!ready.empty()) {
      const int next = ready.top();
      ready.pop();
      ordered.push_back(graph_.nodes[next]);
      for (int consumer : consumers[next]) {
        if (--waits_for[consumer] == 0) ready.push(consumer);
      }
    }
    for (int i = 0; i < graph_.nodes.size() && ordered.size() < graph_.nodes.size(); ++i) {
      if (waits_for[i] > 0) return graph_.nodes[i].Invalid("is in a cycle, or depends on one");
    }
    graph_.nodes = std::move(ordered);
    return absl::OkStatus();
  }

  OnnxFile file_;
  ModelGraph graph_;
  absl::flat_hash_map<std::string, TensorId> ids_;
  std::vector<int> producers_;  // by TensorId: index of a node, or kGiven
};

}  // namespace

absl::StatusOr<ModelGraph> BuildModelGraph(OnnxFile file) {
  return Builder(std::move(file)).Build();
}

}  // namespace tilewire::graph
