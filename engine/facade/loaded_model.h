// SPDX-License-Identifier: Apache-2.0
//
// The model that Engine::LoadModel() returns: plans by input shape, which share packed weights.
#ifndef ENGINE_FACADE_LOADED_MODEL_H_
#define ENGINE_FACADE_LOADED_MODEL_H_

#include <memory>
#include <vector>

#include "engine/cache/primitive_cache.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/graph/onnx_model.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/plan.h"
#include "engine/threading/arena.h"
#include "engine/threading/scratchpad.h"
#include "engine/threading/single_flight_cache.h"

namespace tilewire {

// What all models of an engine share; outlives them.
struct EngineShared {
  explicit EngineShared(const EngineOptions& resolved)
      : options(resolved), arena(resolved.threads), cache(resolved.primitive_cache_bytes) {}

  const EngineOptions options;
  threading::Arena arena;
  PrimitiveCache cache;
  ScratchpadPool scratchpads;

  // What a request may compute on.
  threading::Team TeamFor(const RunOptions& run) {
    const threading::Team all(&arena, options.threads_per_request);
    return (run.serial ? threading::Team::Serial() : all).Until(run.stop);
  }
};

// Builds one plan per shape and keeps at most kPlans of them, and kPlanBytes. A request of a known
// shape never waits for a plan that is being built. Where elements of inputs decide shapes, there
// is a plan for each set of these elements, within the same bounds. Thread-safe.
class LoadedModel : public Model {
 public:
  static constexpr size_t kPlans = 32;
  static constexpr int64_t kPlanBytes = int64_t{128} << 20;

  // Also builds the plan for one image if the signature leaves nothing but the batch open. Errors
  // are those of graph::OnnxModel::Specialize() and lowering::LowerNetwork().
  static absl::StatusOr<std::shared_ptr<const Model>> Create(
      std::shared_ptr<const graph::OnnxModel> source, std::shared_ptr<EngineShared> shared,
      const LoadOptions& options = {});

  const ModelSignature& signature() const override { return signature_; }
  absl::StatusOr<std::vector<OutputTensor>> Run(absl::Span<const InputTensor> inputs,
                                                absl::Span<const OutputRequest> outputs,
                                                const RunOptions& options) const override;
  std::optional<int64_t> PlannedOperations(absl::Span<const InputTensor> inputs) const override;
  absl::StatusOr<Explanation> Explain(const ExplainOptions& options) const override;
  int64_t weights_bytes() const override { return source_->weights_bytes(); }
  absl::Status CheckFiles() const override { return source_->CheckFiles(); }

 private:
  LoadedModel(std::shared_ptr<const graph::OnnxModel> source, std::shared_ptr<EngineShared> shared);

  // What a plan is made for: the dims of each input, then the bytes of each input that decides
  // shapes, as numbers.
  using PlanKey = std::vector<Dims>;

  void SetKey(absl::Span<const InputTensor> inputs, PlanKey* key) const;
  absl::StatusOr<std::shared_ptr<const runtime::Plan>> PlanFor(
      const PlanKey& key, const LoadOptions& options = {}) const;
  absl::Status CheckBytes(absl::Span<const InputTensor> inputs) const;
  // Of the first dims of the key.
  absl::Status CheckDims(const PlanKey& key, size_t inputs) const;
  // Times options.runs runs of the plan.
  absl::Status Time(const runtime::Plan& plan, const ExplainOptions& options,
                    Explanation* explanation) const;
  // The signature's input dims for this batch; kInvalidArgument where another dimension is open.
  absl::StatusOr<std::vector<Dims>> DimsForBatch(int64_t batch) const;

  const std::shared_ptr<const graph::OnnxModel> source_;
  const std::shared_ptr<EngineShared> shared_;
  ModelSignature signature_;
  mutable runtime::PackedWeights weights_;
  const bool has_deciding_inputs_;
  mutable threading::SingleFlightCache<runtime::Plan, PlanKey> plans_;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_LOADED_MODEL_H_
