// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/onnx_model.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/network/passes/passes.h"
#include "engine/onnx/deciding_inputs.h"
#include "engine/onnx/empty_tensors.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/file_format.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/file/model_writer.h"
#include "engine/onnx/graph_builder.h"
#include "engine/onnx/merged_initializers.h"
#include "engine/onnx/ops/op_table.h"
#include "engine/onnx/signature.h"
#include "engine/onnx/specialization.h"
#include "engine/onnx/trainable.h"
#include "engine/onnx/training_leftovers.h"

namespace tilewire::reader {

using network::Network;
using network::RunPasses;
namespace {

// Whether it holds for a node, also of graphs in attributes.
using HoldsForNode = bool (*)(const Node& node);
bool AnyNode(const std::vector<Node>& nodes, HoldsForNode holds) {
  return absl::c_any_of(nodes, [holds](const Node& node) {
    return holds(node) || absl::c_any_of(node.bodies, [holds](const auto& body) {
             return AnyNode(body.second->nodes, holds);
           });
  });
}
bool IsLoop(const Node& node) { return node.op() == "Loop"; }
bool NamesTensors(const Node& node) { return FindOp(node)->names_tensors; }

class ParsedModel final : public OnnxModel {
 public:
  // `files` are null for a model that is only run.
  static absl::StatusOr<std::shared_ptr<const OnnxModel>> Create(ModelGraph graph,
                                                                 std::optional<ModelFiles> files) {
    auto model = std::make_shared<ParsedModel>();
    model->graph_ = std::move(graph);
    model->files_ = std::move(files);
    ABSL_ASSIGN_OR_RETURN(model->folded_, FoldConstants(model->graph_));
    ABSL_ASSIGN_OR_RETURN(model->signature_, InferSignature(model->graph_, model->folded_));
    model->has_loops_ = AnyNode(model->graph_.nodes, IsLoop);
    model->names_tensors_ = AnyNode(model->graph_.nodes, NamesTensors);
    if (model->names_tensors_ && model->signature_.has_cuts)
      return Unimplemented("gradients of a model whose sizes depend on what it computes");
    return std::shared_ptr<const OnnxModel>(std::move(model));
  }

  const std::vector<TensorSpec>& inputs() const override { return signature_.inputs; }
  const std::vector<TensorSpec>& outputs() const override { return signature_.outputs; }
  int64_t weights_bytes() const override { return graph_.weights_bytes; }

  absl::StatusOr<Network> Specialize(absl::Span<const Dims> input_dims,
                                     absl::Span<const std::string> deciding) const override {
    return WholeNetwork(input_dims, deciding, {});
  }

  absl::StatusOr<Stage> FirstStage(absl::Span<const Dims> input_dims,
                                   absl::Span<const std::string> deciding,
                                   const Interrupted& interrupted) const override {
    if (signature_.has_cuts) return FirstOfStages(input_dims, interrupted);
    Stage stage;
    absl::StatusOr<Network> whole = WholeNetwork(input_dims, deciding, interrupted);
    if (absl::IsUnimplemented(whole.status()) && has_loops_ && !deciding.empty()) {
      // A loop that a request asks to run too often for one network may run in stages.
      absl::StatusOr<Stage> first = FirstOfStages(input_dims, interrupted);
      if (!absl::IsUnimplemented(first.status())) return first;
    }
    ABSL_ASSIGN_OR_RETURN(stage.network, std::move(whole));
    return stage;
  }

  absl::StatusOr<Stage> NextStage(StageStart start, const Interrupted& interrupted) const override {
    ABSL_ASSIGN_OR_RETURN(Stage stage, BuildStage(graph_, std::move(start), interrupted));
    RunPasses(&stage.network);
    return stage;
  }

  absl::StatusOr<std::vector<HeldTensor>> Compute(const Node& node, const Cut& cut,
                                                  const std::vector<HeldTensor>& inputs,
                                                  const Interrupted& interrupted) const override {
    return ComputeLate(node, graph_, cut, inputs, interrupted);
  }

  LaterStages StagesAfterFirst(const Stage& first, const Interrupted& interrupted) const override {
    LaterStages later = StagesAfter(graph_, first, interrupted);
    for (Stage& stage : later.stages) RunPasses(&stage.network);
    return later;
  }

  bool has_cuts() const override { return signature_.has_cuts; }
  absl::Status unfit() const override { return signature_.unfit; }
  bool has_running_loops() const override { return signature_.has_cuts && has_loops_; }

  std::vector<ConstantPtr> Trainable() const override {
    const std::vector<bool> trainable = TrainableTensors(graph_, folded_);
    std::vector<ConstantPtr> constants;
    for (size_t id = 0; id < trainable.size(); ++id) {
      if (trainable[id]) constants.push_back(folded_[id].constant);
    }
    return constants;
  }

  absl::StatusOr<Network> SpecializeForTraining(absl::Span<const Dims> input_dims,
                                                const TrainingPurpose& purpose) const override {
    ABSL_RETURN_IF_ERROR(CheckInputDims(input_dims));
    ABSL_RETURN_IF_ERROR(CheckMayTrain(input_dims));
    ABSL_ASSIGN_OR_RETURN(const std::vector<bool> learning, Learning(purpose));
    ABSL_ASSIGN_OR_RETURN(Network network,
                          BuildForTraining(graph_, folded_, learning, input_dims, purpose));
    network::RunTrainingPasses(&network);
    return network;
  }

  absl::Status Write(const std::string& path, absl::Span<const NewElements> changed,
                     const Metadata& added) const override {
    if (files_) return WriteModelFile(*files_, path, changed, added);
    return absl::FailedPreconditionError("the model was not opened to be written");
  }

  std::vector<std::string> training_leftovers() const override {
    return files_ ? files_->training_leftovers : std::vector<std::string>();
  }

  std::string taken_apart_text() const override {
    return files_ ? TakenApartText(files_->taken_apart) : "";
  }

  int64_t written_bytes() const override {
    if (!files_) return 0;
    int64_t bytes = files_->model->size();
    for (const auto& [location, source] : files_->external) bytes += source->size();
    // Names and the rest of a tensor are no longer than the node was, but for this.
    constexpr int64_t kMostFrame = 128;
    for (const ConstantPtr& constant : files_->taken_apart)
      bytes += constant->count() * SizeOf(constant->declared) + kMostFrame;
    return bytes;
  }

  absl::Status CheckPlaces(const std::string& path) const override {
    if (files_) return reader::CheckPlaces(*files_, path);
    return absl::FailedPreconditionError("the model was not opened to be written");
  }

  absl::Status CheckFiles() const override {
    for (const ConstantPtr& constant : graph_.initializers) {
      if (constant == nullptr || constant->stored == nullptr) continue;
      ABSL_RETURN_IF_ERROR(constant->stored->Check());
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Stage> FirstOfStages(absl::Span<const Dims> input_dims,
                                      const Interrupted& interrupted) const {
    ABSL_RETURN_IF_ERROR(CheckInputDims(input_dims));
    ABSL_ASSIGN_OR_RETURN(Stage stage, BuildFirstStage(graph_, folded_, input_dims, interrupted));
    RunPasses(&stage.network);
    return stage;
  }

  absl::StatusOr<Network> WholeNetwork(absl::Span<const Dims> input_dims,
                                       absl::Span<const std::string> deciding,
                                       const Interrupted& interrupted) const {
    ABSL_RETURN_IF_ERROR(CheckInputDims(input_dims));
    ABSL_ASSIGN_OR_RETURN(const std::vector<ConstantPtr> known, KnownInputs(input_dims, deciding));
    ABSL_ASSIGN_OR_RETURN(Network network,
                          BuildNetwork(graph_, folded_, input_dims, known, interrupted));
    // Gradients hold what the passes would change.
    if (names_tensors_) {
      network::RemoveDead(&network);
    } else {
      RunPasses(&network);
    }
    return network;
  }

  // kUnimplemented: sizes depend on elements, or integers stand for real numbers.
  absl::Status CheckMayTrain(absl::Span<const Dims> input_dims) const {
    if (signature_.has_cuts)
      return Unimplemented("training: the model's sizes depend on what it computes");
    for (size_t i = 0; i < inputs().size(); ++i) {
      const std::string name = inputs()[i].name.substr(0, 200);
      if (inputs()[i].decides_shapes)
        return Unimplemented("training: the elements of input '", name, "' decide shapes");
      if (IsEmpty(input_dims[i]))
        return InvalidArgument("training: input '", name, "' has no elements");
    }
    if (names_tensors_) return Unimplemented("training of a model that computes gradients itself");
    for (const Node& node : graph_.nodes) {
      if (FindOp(node)->is_quantized)
        return node.Unimplemented(
            "training of a quantized model; what can be trained is the model of real numbers that "
            "it was made of");
    }
    return absl::OkStatus();
  }

  // By TensorId: what learns.
  absl::StatusOr<std::vector<bool>> Learning(const TrainingPurpose& purpose) const {
    std::vector<bool> learning = TrainableTensors(graph_, folded_);
    absl::flat_hash_set<std::string> unknown = purpose.frozen;
    for (size_t id = 0; id < learning.size(); ++id) {
      const bool frozen = learning[id] && unknown.erase(graph_.tensor_names[id]) > 0;
      if (frozen) learning[id] = false;
    }
    if (unknown.empty()) return learning;
    return InvalidArgument("training: '", absl::c_min_element(unknown)->substr(0, 200),
                           "' is to stay as it is, but is nothing that training changes");
  }

  absl::Status CheckInputDims(absl::Span<const Dims> input_dims) const {
    if (input_dims.size() != inputs().size()) {
      return InvalidArgument(input_dims.size(), " inputs where the model has ", inputs().size());
    }
    for (size_t i = 0; i < input_dims.size(); ++i) {
      const TensorSpec& spec = inputs()[i];
      const Dims& given = input_dims[i];
      // No elements bound the dims of an empty tensor, and operators list what is along one.
      const bool lists = IsEmpty(given) && *absl::c_max_element(given) > kLargestFold;
      if (spec.Allows(given) && !lists) continue;
      return InvalidArgument("input '", spec.name.substr(0, 200), "': shape ", DimsToString(given),
                             lists ? " is too large" : " does not match ",
                             lists ? "" : ShapeText(spec));
    }
    return absl::OkStatus();
  }

  // By input: the constant of one that decides shapes, else null.
  absl::StatusOr<std::vector<ConstantPtr>> KnownInputs(absl::Span<const Dims> dims,
                                                       absl::Span<const std::string> bytes) const {
    std::vector<ConstantPtr> known(inputs().size());
    size_t next = 0;
    for (size_t i = 0; i < known.size(); ++i) {
      const TensorSpec& spec = inputs()[i];
      if (!spec.decides_shapes) continue;
      if (next == bytes.size()) {
        return InvalidArgument("the model's shapes depend on the elements of input '",
                               spec.name.substr(0, 200), "', which are not given");
      }
      ABSL_ASSIGN_OR_RETURN(known[i],
                            DecidingConstant(spec.name, spec.type, dims[i], bytes[next++]));
    }
    return known;
  }

  ModelGraph graph_;
  std::optional<ModelFiles> files_;  // of a model to be written
  std::vector<Operand> folded_;
  Signature signature_;
  bool has_loops_ = false, names_tensors_ = false;
};

}  // namespace

absl::StatusOr<Stage> OnnxModel::FirstStage(absl::Span<const Dims> input_dims,
                                            absl::Span<const std::string> deciding,
                                            const Interrupted&) const {
  Stage stage;
  ABSL_ASSIGN_OR_RETURN(stage.network, Specialize(input_dims, deciding));
  return stage;
}

absl::StatusOr<Stage> OnnxModel::NextStage(StageStart, const Interrupted&) const {
  return Internal("a model without stages");
}

LaterStages OnnxModel::StagesAfterFirst(const Stage&, const Interrupted&) const {
  return {{}, Internal("a model without stages")};
}

absl::StatusOr<std::vector<HeldTensor>> OnnxModel::Compute(const Node&, const Cut&,
                                                           const std::vector<HeldTensor>&,
                                                           const Interrupted&) const {
  return Internal("a model without stages");
}

absl::StatusOr<std::shared_ptr<const OnnxModel>> OnnxModel::Open(const std::string& path,
                                                                 OpenedFor use) {
  ReportProgress("reading the file", "");
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ByteSource> file, OpenFile(path));
  absl::StatusOr<OnnxFile> onnx_file = ReadOnnxFile(*file, path);
  if (!onnx_file.ok()) return NamedByFormat(onnx_file.status(), *file);
  std::optional<ModelFiles> files;
  if (use == OpenedFor::kWriting) {
    files = ModelFiles{path, file, std::move(onnx_file->external), {}, {}};
    files->training_leftovers = TrainingLeftovers(*onnx_file);
    ABSL_ASSIGN_OR_RETURN(files->taken_apart, TakeApart(&*onnx_file));
  }
  ABSL_ASSIGN_OR_RETURN(ModelGraph graph, BuildModelGraph(*std::move(onnx_file)));
  return ParsedModel::Create(std::move(graph), std::move(files));
}

absl::StatusOr<std::shared_ptr<const OnnxModel>> OnnxModel::OpenBytes(std::string bytes) {
  const std::shared_ptr<const ByteSource> source = KeptBytes(std::move(bytes));
  ABSL_ASSIGN_OR_RETURN(OnnxFile onnx_file, ReadOnnxFile(*source, ""));
  ABSL_ASSIGN_OR_RETURN(ModelGraph graph, BuildModelGraph(std::move(onnx_file)));
  return ParsedModel::Create(std::move(graph), std::nullopt);
}

}  // namespace tilewire::reader
