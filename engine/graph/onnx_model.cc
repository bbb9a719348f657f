// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/onnx_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/byte_source.h"
#include "engine/graph/file_format.h"
#include "engine/graph/findings.h"
#include "engine/graph/model_graph.h"
#include "engine/graph/passes/passes.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {
namespace {

constexpr int64_t kOpen = -1;
constexpr size_t kFirstSpatial = 2;

// Sizes that stand in for open dimensions when output shapes are inferred: an output dimension that
// differs between the two is open.
struct Probe {
  int64_t batch, spatial;
};
constexpr Probe kProbes[] = {{1, 224}, {2, 256}};

class ParsedModel final : public OnnxModel {
 public:
  static absl::StatusOr<std::shared_ptr<const OnnxModel>> Create(ModelGraph graph) {
    auto model = std::make_shared<ParsedModel>();
    model->graph_ = std::move(graph);
    ABSL_ASSIGN_OR_RETURN(model->folded_, FoldConstants(model->graph_));
    ABSL_RETURN_IF_ERROR(model->DeclareInputs());
    ABSL_RETURN_IF_ERROR(model->InferOutputs());
    return std::shared_ptr<const OnnxModel>(std::move(model));
  }

  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  int64_t weights_bytes() const override { return graph_.weights_bytes; }

  absl::StatusOr<Network> Specialize(absl::Span<const Dims> input_dims) const override {
    ABSL_RETURN_IF_ERROR(CheckInputDims(input_dims));
    ABSL_ASSIGN_OR_RETURN(Network network, BuildNetwork(graph_, folded_, input_dims));
    RunPasses(&network);
    return network;
  }

  absl::Status CheckFiles() const override {
    for (const ConstantPtr& constant : graph_.initializers) {
      if (constant == nullptr || constant->stored == nullptr) continue;
      ABSL_RETURN_IF_ERROR(constant->stored->Check());
    }
    return absl::OkStatus();
  }

 private:
  absl::Status DeclareInputs() {
    Findings findings;
    for (const DeclaredTensor& input : graph_.inputs) {
      const std::string& name = graph_.tensor_names[input.id];
      if (!input.has_shape) {
        findings.Add(absl::UnimplementedError(
            absl::StrCat("input '", name.substr(0, 200), "' has no declared dims")));
      }
      if (input.dims.size() >= kFirstSpatial && input.dims[1] == kOpen) {
        findings.Add(absl::UnimplementedError(
            absl::StrCat("input '", name.substr(0, 200), "' leaves its channels open")));
      }
      inputs_.push_back({name, input.type, input.dims});
    }
    return findings.AsStatus();
  }

  std::vector<Dims> ProbeDims(const Probe& probe) const {
    std::vector<Dims> all;
    for (const TensorSpec& input : inputs_) {
      Dims& dims = all.emplace_back(input.dims);
      for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == kOpen) dims[i] = i == 0 ? probe.batch : probe.spatial;
      }
    }
    return all;
  }

  absl::Status InferOutputs() {
    for (const Probe& probe : kProbes) {
      ABSL_ASSIGN_OR_RETURN(const Network network, BuildNetwork(graph_, folded_, ProbeDims(probe)));
      for (size_t i = 0; i < graph_.outputs.size(); ++i) {
        const Dims& dims = network.output_dims[i];
        if (i == outputs_.size()) {
          const DeclaredTensor& output = graph_.outputs[i];
          outputs_.push_back({graph_.tensor_names[output.id], output.type, dims});
          continue;
        }
        Dims& known = outputs_[i].dims;
        if (known.size() != dims.size()) {
          return absl::UnimplementedError(absl::StrCat("the rank of output '",
                                                       outputs_[i].name.substr(0, 200),
                                                       "' depends on the input's dims"));
        }
        for (size_t d = 0; d < dims.size(); ++d) known[d] = known[d] == dims[d] ? dims[d] : kOpen;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckInputDims(absl::Span<const Dims> input_dims) const {
    if (input_dims.size() != inputs_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(input_dims.size(), " inputs where the model has ", inputs_.size()));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Dims &given = input_dims[i], &declared = inputs_[i].dims;
      bool fits = given.size() == declared.size();
      for (size_t d = 0; fits && d < given.size(); ++d) {
        fits = given[d] >= 1 && (declared[d] == kOpen || declared[d] == given[d]);
      }
      if (!fits) {
        return absl::InvalidArgumentError(absl::StrCat("input '", inputs_[i].name.substr(0, 200),
                                                       "': shape ", DimsToString(given),
                                                       " does not match ", DimsToString(declared)));
      }
    }
    return absl::OkStatus();
  }

  ModelGraph graph_;
  std::vector<Operand> folded_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const OnnxModel>> OnnxModel::Open(const std::string& path) {
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> file, OpenFile(path));
  absl::StatusOr<OnnxFile> onnx_file = ReadOnnxFile(*file, path);
  if (!onnx_file.ok()) return NamedByFormat(onnx_file.status(), *file);
  ABSL_ASSIGN_OR_RETURN(ModelGraph graph, BuildModelGraph(*std::move(onnx_file)));
  return ParsedModel::Create(std::move(graph));
}

}  // namespace tilewire::graph
