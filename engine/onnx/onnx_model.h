// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file, read once. Nodes are parsed by protobuf (our subset proto). Weights never pass
// through protobuf objects: small ones are read from the file at once, large ones when they are
// packed.
//
//   ABSL_ASSIGN_OR_RETURN(auto model, OnnxModel::Open("resnet50.onnx"));
//   ABSL_ASSIGN_OR_RETURN(Network network, model->Specialize({{8, 3, 224, 224}}));
//
// Immutable after Open(): any number of threads may Specialize() at once.
#ifndef ENGINE_ONNX_ONNX_MODEL_H_
#define ENGINE_ONNX_ONNX_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/tensor_spec.h"
#include "engine/network/network.h"
#include "engine/onnx/file/model_files.h"
#include "engine/onnx/stages/assumed_stages.h"
#include "engine/onnx/stages/cut.h"
#include "engine/onnx/stages/held_tensor.h"
#include "engine/onnx/training_purpose.h"

namespace tilewire::reader {

// The use of a model that is opened. One to be written again keeps its files open, so that its
// bytes are those that were read, whatever is put in their place.
enum class OpenedFor { kRunning, kWriting };

class OnnxModel {
 public:
  // Reads, validates and checks that every operator is supported; infers output shapes.
  //   kNotFound           no such file
  //   kInvalidArgument    not ONNX, truncated, cyclic, dangling or duplicate names, wrong attribute
  //                       types, initializers whose data does not fit their dims; the message names
  //                       the node or tensor
  //   kUnimplemented      an operator, domain or opset that is not supported; the message names
  //                       node, operator, domain and opset
  static absl::StatusOr<std::shared_ptr<const OnnxModel>> Open(const std::string& path,
                                                               OpenedFor use = OpenedFor::kRunning);
  // The same of a file's bytes, to be run; large weights are read in them, so that they are kept.
  static absl::StatusOr<std::shared_ptr<const OnnxModel>> OpenBytes(std::string bytes);
  virtual ~OnnxModel() = default;

  virtual const std::vector<TensorSpec>& inputs() const = 0;
  virtual const std::vector<TensorSpec>& outputs() const = 0;
  virtual int64_t weights_bytes() const = 0;

  // The network for these input shapes (in the order of inputs()), all passes applied. `deciding`
  // are the bytes of the inputs that decide shapes (TensorSpec), in their order.
  //   kInvalidArgument    shapes that do not fit the signature, or that make a later shape
  //                       impossible (the message names the node)
  //   kResourceExhausted  an input that decides shapes of too many elements, or shapes that it
  //                       decides and that are too large
  virtual absl::StatusOr<network::Network> Specialize(
      absl::Span<const Dims> input_dims, absl::Span<const std::string> deciding = {}) const = 0;

  // The same in stages (cut.h), which a model has whose sizes are known only once something is
  // computed; for all others, the network that Specialize() gives and no cut. Errors are the same,
  // and what `interrupted` returned, which is called between nodes.
  virtual absl::StatusOr<Stage> FirstStage(absl::Span<const Dims> input_dims,
                                           absl::Span<const std::string> deciding,
                                           const Interrupted& interrupted) const;
  virtual absl::StatusOr<Stage> NextStage(StageStart start, const Interrupted& interrupted) const;
  // ComputeLate() of this model.
  virtual absl::StatusOr<std::vector<HeldTensor>> Compute(const Node& node, const Cut& cut,
                                                          const std::vector<HeldTensor>& inputs,
                                                          const Interrupted& interrupted) const;
  // StagesAfter() of this model, all passes applied.
  virtual LaterStages StagesAfterFirst(const Stage& first, const Interrupted& interrupted) const;
  virtual bool has_cuts() const { return false; }
  // Not OK where no made-up shape fitted when the model was opened (signature.h).
  virtual absl::Status unfit() const { return absl::OkStatus(); }
  // Whether stages may run a Loop whose end is computed.
  virtual bool has_running_loops() const { return false; }

  // The constants that training may change: initializers of real numbers that operators take as
  // weights, or as a tensor of several elements beside what they compute, and Constant nodes of
  // several such elements; never what decides a shape. In the order of the graph's names.
  virtual std::vector<network::ConstantPtr> Trainable() const = 0;

  // The network for these input shapes in which Trainable() are values: Network::parameters, those
  // that `purpose` freezes excepted. Only passes that keep parameters and activations apart are
  // applied (network::TrainingPassTable()).
  //   kUnimplemented    uses of operators that are supported for constant weights alone, all of
  //                     them in one message; models whose shapes depend on elements
  //   kInvalidArgument  as Specialize(); a frozen name that is none of Trainable()
  virtual absl::StatusOr<network::Network> SpecializeForTraining(
      absl::Span<const Dims> input_dims, const TrainingPurpose& purpose) const = 0;

  // Writes the model's file with other elements of some initializers (model_writer.h), whose errors
  // these are.
  //   kFailedPrecondition  the model was not opened for it
  virtual absl::Status Write(const std::string& path, absl::Span<const NewElements> changed,
                             const Metadata& added) const = 0;

  // The sentences of training_leftovers.h; none of a file that is not opened for writing.
  virtual std::vector<std::string> training_leftovers() const { return {}; }

  // TakenApartText() of merged_initializers.h; empty of a file that is not opened for writing.
  virtual std::string taken_apart_text() const { return ""; }

  // Bytes of all files that Write() makes, at most, without added metadata; 0 of a model that was
  // not opened for it.
  virtual int64_t written_bytes() const { return 0; }

  // Whether Write() could begin, as files lie now; writes nothing.
  //   its errors of places
  virtual absl::Status CheckPlaces(const std::string& path) const = 0;

  // Whether all that may still be read from files, when weights are packed for another network, is
  // as it was when the model was opened.
  //   kFailedPrecondition  a file was written to; the message names a tensor
  //   kResourceExhausted   memory
  virtual absl::Status CheckFiles() const { return absl::OkStatus(); }
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_ONNX_MODEL_H_
