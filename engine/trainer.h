// SPDX-License-Identifier: Apache-2.0
//
// A model in training: the parameters of an ONNX file, the state of an optimizer, and updates that
// change both.
//
//   #include "engine/base/status_macros.h"
//
//   TrainingSpec spec;
//   spec.losses = {LossSpec()};
//   ABSL_ASSIGN_OR_RETURN(auto trainer, CreateTrainer(engine.get(), "digits.onnx", spec));
//   ABSL_ASSIGN_OR_RETURN(UpdateResult result, trainer->Update(inputs, targets, {}));
//   ABSL_RETURN_IF_ERROR(trainer->WriteModel("trained.onnx"));
//
// A parameter is a floating-point initializer that has a gradient; those that an exporter merged,
// as all their elements are the same number, are taken apart (notes() tell of them). An update is
// forward, loss, backward, and one step of the optimizer, for one batch. After n updates the
// parameters depend on the file, the spec, the batches in their order, the instruction set and the
// precision, and on nothing else. Where the spec asks for their average, Evaluate(), Recalibrate(),
// WriteModel() and Parameter() are of it.
#ifndef ENGINE_TRAINER_H_
#define ENGINE_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "engine/memory/tensor_spec.h"
#include "engine/model.h"
#include "engine/training/training_spec.h"

namespace tilewire {

struct ParameterSpec {
  std::string name;  // of the initializer
  Dims dims;
  bool frozen = false;
};

// A peculiarity of the file that matters for training.
struct TrainingNote {
  enum class Kind {
    kTraining,  // of its parameters, or of how they learn
    kServing,   // of nodes that do in inference what belongs to training
  } kind = Kind::kTraining;
  std::string text;  // a sentence
};

struct UpdateResult {
  int64_t update = 0;  // counts from 1; those that were skipped count
  double loss = 0;
  double rate = 0;           // the schedule's
  double gradient_norm = 0;  // of all gradients, before they are clipped
  bool skipped = false;      // a loss or gradient is not finite: nothing was changed
};

struct Evaluation {
  double loss = 0;                    // the sum of all losses
  std::vector<double> losses;         // each, as in the spec, if there are targets; NaN: of nothing
  std::vector<OutputTensor> outputs;  // all, nchw
};

// The whole numbers that the elements of a tensor may be: indices, from the end where they are
// negative, and classes.
struct ElementBounds {
  bool is_target = false;
  int tensor = 0;  // into the inputs of the signature, or into targets()
  int64_t least = 0, most = 0;
  std::optional<int64_t> besides;  // one more: LossSpec::ignore_index
  std::string reason;              // half a sentence: what takes them
};

// Thread-compatible: one call at a time.
class Trainer {
 public:
  // Updates in a row that are skipped before Update() fails.
  static constexpr int kMostSkipped = 10;

  virtual ~Trainer() = default;
  virtual const ModelSignature& signature() const = 0;
  // The tensors that Update() takes beside the inputs: one per loss, in the order of the spec's.
  virtual const std::vector<TensorSpec>& targets() const = 0;
  virtual const std::vector<ParameterSpec>& parameters() const = 0;
  virtual const std::vector<TrainingNote>& notes() const = 0;

  // Makes what Update() needs for such tensors and, if `recalibrates`, what Recalibrate() does, so
  // that a long training does not find out later what their shapes cannot do. Changes nothing.
  // Looks at no element of theirs, and returns what all of them may be, as far as the model tells:
  // indices that it computes have no bounds.
  //   kInvalidArgument  a parameter holds numbers that are not finite
  //   and those of the two, but for elements; some with a reason (engine/onnx/training_refusal.h)
  virtual absl::StatusOr<std::vector<ElementBounds>> Prepare(absl::Span<const InputTensor> inputs,
                                                             absl::Span<const InputTensor> targets,
                                                             bool recalibrates,
                                                             const RunOptions& options) = 0;

  // One update. One that ends with an error has changed nothing.
  //   kInvalidArgument     dims or sizes that do not fit, a label out of range (with its index), an
  //                        index that the model takes from its inputs out of range
  //   kFailedPrecondition  kMostSkipped updates in a row were skipped; the message tells of batches
  //                        that had no label that counts
  //   kResourceExhausted   memory
  //   what `options.interrupted` returned
  virtual absl::StatusOr<UpdateResult> Update(absl::Span<const InputTensor> inputs,
                                              absl::Span<const InputTensor> targets,
                                              const RunOptions& options) = 0;
  // Loss and outputs for inference, with the parameters as they are; changes nothing. No targets:
  // no loss. Errors are Update()'s.
  virtual absl::StatusOr<Evaluation> Evaluate(absl::Span<const InputTensor> inputs,
                                              absl::Span<const InputTensor> targets,
                                              const RunOptions& options) const = 0;
  // Takes the running statistics of normalizations from these inputs, by a forward pass: they
  // become the means of those of all batches that were given since the last update. Normalizations
  // whose scale and shift are frozen keep theirs. An error has changed nothing.
  //   kInvalidArgument     no normalization follows a batch; numbers that are not finite
  //   and Update()'s
  virtual absl::Status Recalibrate(absl::Span<const InputTensor> inputs,
                                   const RunOptions& options) = 0;
  // Writes the file again with the parameters and statistics of now, in the types that it has;
  // external data into files beside it. Nothing is left at `path` if it fails.
  //   kInvalidArgument    `path` is the file that is being trained, or is not a path for a file
  //   kAlreadyExists      external data would replace a file beside it
  //   kFailedPrecondition `path` is a mount point, or the model's file was written to meanwhile
  //   kResourceExhausted  no space
  virtual absl::Status WriteModel(const std::string& path) const = 0;
  // Bytes of all files that it writes, at most.
  virtual int64_t written_bytes() const = 0;
  // Whether files lie in the way of WriteModel(), to be asked before a long training; writes
  // nothing.
  //   kInvalidArgument, kAlreadyExists, kFailedPrecondition  as there
  virtual absl::Status CheckPlaces(const std::string& path) const = 0;
  // The elements of a parameter, row-major.
  //   kNotFound  no such parameter
  virtual absl::StatusOr<std::vector<float>> Parameter(const std::string& name) const = 0;
};

// The model of an ONNX file, to be trained by `engine`, which may end before the trainer. A free
// function, so that binaries which call it nowhere, as the server, are linked without all that
// trains.
//   kInvalidArgument  a spec out of range, an output that the file does not have, a pattern that
//                     matches no parameter; and those of reader::OnnxModel::Open
//   kResourceExhausted  memory
//   kUnimplemented    operations between a parameter and a loss that have no gradient, each with
//                     its node and the reason; quantized models
absl::StatusOr<std::unique_ptr<Trainer>> CreateTrainer(Engine* engine, const std::string& path,
                                                       const TrainingSpec& spec);

}  // namespace tilewire

#endif  // ENGINE_TRAINER_H_
