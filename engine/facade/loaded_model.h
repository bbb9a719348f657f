// SPDX-License-Identifier: Apache-2.0
//
// The model that Engine::LoadModel() returns: checks a request, and runs it by the plan for its
// shapes.
#ifndef ENGINE_FACADE_LOADED_MODEL_H_
#define ENGINE_FACADE_LOADED_MODEL_H_

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/facade/stage_plans.h"
#include "engine/onnx/onnx_model.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/plan.h"

namespace tilewire {

class StagedRun;

// The tuning that a model was loaded with.
struct LoadedTuning {
  std::optional<TuningFacts> facts;  // nullopt: none
  int64_t held_bytes = 0;            // of the tuned file, in memory
};

// Builds one plan per shape and keeps some of them (stage_plans.h). A request of a known shape
// never waits for a plan that is being built. Where elements of inputs decide shapes, there is a
// plan for each set of these elements; where computed elements do, a run goes from plan to plan
// (staged_run.h). Thread-safe.
class LoadedModel : public Model {
 public:
  // Also builds the plan for one image if the signature leaves nothing but the batch open. Errors
  // are those of reader::OnnxModel::Specialize() and lowering::LowerNetwork().
  static absl::StatusOr<std::shared_ptr<const Model>> Create(
      std::shared_ptr<const reader::OnnxModel> source, std::shared_ptr<EngineShared> shared,
      const LoadOptions& options = {}, LoadedTuning tuning = {});

  const ModelSignature& signature() const override { return signature_; }
  absl::StatusOr<std::vector<OutputTensor>> Run(absl::Span<const InputTensor> inputs,
                                                absl::Span<const OutputRequest> outputs,
                                                const RunOptions& options) const override;
  std::optional<int64_t> PlannedOperations(absl::Span<const InputTensor> inputs) const override;
  uint64_t PlanHash(absl::Span<const InputTensor> inputs) const override;
  bool TimeVaries() const override { return source_->has_running_loops(); }
  absl::StatusOr<Explanation> Explain(const ExplainOptions& options) const override;
  std::vector<LivePlan> LiveProfile() const override;
  int64_t weights_bytes() const override { return source_->weights_bytes(); }
  std::vector<std::vector<Dims>> PlannedShapes() const override;
  const TuningFacts* tuning() const override { return tuning_.facts ? &*tuning_.facts : nullptr; }
  int64_t HeldBytes() const override { return plans_.HeldBytes() + tuning_.held_bytes; }
  absl::Status CheckFiles() const override { return source_->CheckFiles(); }
  void Release(absl::FunctionRef<void()> between) const override { plans_.Release(between); }

 private:
  LoadedModel(std::shared_ptr<const reader::OnnxModel> source, std::shared_ptr<EngineShared> shared,
              LayerOptions layers, LoadedTuning tuning);

  using PlanKey = StagePlans::Key;

  void SetKey(absl::Span<const InputTensor> inputs, PlanKey* key) const;
  // The plan of the whole model, or of its first stage.
  absl::StatusOr<PlannedStagePtr> PlanFor(const PlanKey& key, const LoadOptions& options) const;
  // `stages` has run what comes before `last`; null: its plan is the whole model's.
  absl::StatusOr<std::vector<OutputTensor>> RunPlan(const PlannedStage& last,
                                                    absl::Span<const runtime::InputBytes> inputs,
                                                    absl::Span<const OutputRequest> requests,
                                                    const RunOptions& options,
                                                    StagedRun* stages) const;
  // Checks the first dims of the key.
  absl::Status CheckDims(const PlanKey& key, size_t inputs) const;
  // Appends the stages after the first one, for made-up sizes.
  absl::Status DescribeLater(const PlannedStage& first, const ExplainOptions& options,
                             Explanation* explanation) const;
  // Times options.runs runs of the plan.
  absl::Status Time(const runtime::Plan& plan, const ExplainOptions& options,
                    Explanation* explanation) const;
  // The signature's input dims for this batch; kInvalidArgument where another dimension is open.
  absl::StatusOr<std::vector<Dims>> DimsForBatch(int64_t batch) const;

  const std::shared_ptr<const reader::OnnxModel> source_;
  const std::shared_ptr<EngineShared> shared_;
  ModelSignature signature_;
  const LoadedTuning tuning_;
  const bool has_deciding_inputs_;
  mutable StagePlans plans_;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_LOADED_MODEL_H_
