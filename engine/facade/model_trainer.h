// SPDX-License-Identifier: Apache-2.0
//
// The trainer that CreateTrainer() returns: runs the plan of an update, which leaves
// gradients in the store, looks at them, and then changes the parameters there. Until then nothing
// else that outlives the run was written, so that an update may be stopped, or skipped.
// Thread-compatible.
#ifndef ENGINE_FACADE_MODEL_TRAINER_H_
#define ENGINE_FACADE_MODEL_TRAINER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/facade/dropout_masks.h"
#include "engine/facade/parameter_averages.h"
#include "engine/facade/plan_tensors.h"
#include "engine/facade/training_plans.h"
#include "engine/facade/training_setup.h"
#include "engine/trainer.h"
#include "engine/training/gradient_norm.h"
#include "engine/training/optimizer.h"

namespace tilewire {

class ModelTrainer final : public Trainer {
 public:
  // Errors are those of CreateTrainer().
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      std::shared_ptr<const reader::OnnxModel> source, std::shared_ptr<EngineShared> shared,
      const TrainingSpec& spec);

  const ModelSignature& signature() const override { return signature_; }
  const std::vector<TensorSpec>& targets() const override { return setup_.targets; }
  const std::vector<ParameterSpec>& parameters() const override { return setup_.parameters; }
  const std::vector<TrainingNote>& notes() const override { return notes_; }

  absl::StatusOr<std::vector<ElementBounds>> Prepare(absl::Span<const InputTensor> inputs,
                                                     absl::Span<const InputTensor> targets,
                                                     bool recalibrates,
                                                     const RunOptions& options) override;
  absl::StatusOr<UpdateResult> Update(absl::Span<const InputTensor> inputs,
                                      absl::Span<const InputTensor> targets,
                                      const RunOptions& options) override;
  absl::StatusOr<Evaluation> Evaluate(absl::Span<const InputTensor> inputs,
                                      absl::Span<const InputTensor> targets,
                                      const RunOptions& options) const override;
  absl::Status Recalibrate(absl::Span<const InputTensor> inputs,
                           const RunOptions& options) override;
  absl::Status WriteModel(const std::string& path) const override;
  int64_t written_bytes() const override { return source_->written_bytes(); }
  absl::Status CheckPlaces(const std::string& path) const override {
    return source_->CheckPlaces(path);
  }
  absl::StatusOr<std::vector<float>> Parameter(const std::string& name) const override;

 private:
  using Purpose = TrainingPlans::Purpose;

  ModelTrainer(std::shared_ptr<const reader::OnnxModel> source,
               std::shared_ptr<EngineShared> shared, const TrainingSpec& spec, TrainingSetup setup);

  // Makes the plan of an update of two images, or of as many as the model takes, so that what
  // cannot be trained is refused, and the layouts of parameters are chosen. Not where other
  // dimensions are open.
  absl::Status TryUpdate();
  //   kInvalidArgument  a parameter that learns holds a number that is not finite
  absl::Status CheckParameters(const TrainingPlan& planned);
  // Has the parameters' layouts chosen by an update, whatever is asked for first.
  absl::Status SettleParameters(const BatchShape& shape, const RunOptions& options) const;
  absl::StatusOr<BatchShape> CheckShape(absl::Span<const InputTensor> inputs,
                                        absl::Span<const InputTensor> targets) const;
  // `all` are the model's inputs, and the masks of an update.
  absl::StatusOr<AllOutputBytes> RunPlan(const TrainingPlan& planned, std::vector<InputTensor> all,
                                         absl::Span<const InputTensor> targets,
                                         const RunOptions& options) const;

  // The parts of an update after the run of its plan.
  absl::Status TakeMemory(const TrainingPlan& planned);
  std::vector<absl::Span<const float>> GradientsOf(const TrainingPlan& planned) const;
  bool AreFinite(const TrainingPlan& planned, const AllOutputBytes& outputs) const;
  // `lacks_labels`: a loss is not finite because no label of the batch counts in it.
  absl::StatusOr<UpdateResult> Skip(UpdateResult result, bool lacks_labels);
  void TakeStep(const TrainingPlan& planned, const UpdateResult& result,
                const threading::Team& team);
  // Moves running statistics by their own momentum, or by this one.
  void MoveStatistics(const TrainingPlan& planned, const AllOutputBytes& outputs,
                      std::optional<double> momentum = std::nullopt);

  const std::shared_ptr<const reader::OnnxModel> source_;
  const std::shared_ptr<EngineShared> shared_;
  const TrainingSpec spec_;
  const TrainingSetup setup_;
  const ModelSignature signature_;
  std::vector<TrainingNote> notes_;
  mutable TrainingPlans plans_;
  mutable bool settled_ = false;  // the parameters have their layouts
  struct State {
    AlignedBuffer arrays[2];
  };
  std::vector<State> states_;  // of the optimizer, by the store's indices
  DropoutMasks masks_;
  mutable ParameterAverages averages_;
  int64_t updates_ = 0, steps_ = 0;
  int skipped_in_a_row_ = 0, unlabelled_in_a_row_ = 0;  // the latter are among the former
  int64_t recalibrated_ = 0;                            // batches since the last update
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_MODEL_TRAINER_H_
