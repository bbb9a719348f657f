// SPDX-License-Identifier: Apache-2.0
//
// The plans of one model, which share packed weights: of a whole network for the dims of its
// inputs, or of one stage (onnx/stages/cut.h) for what came out of the stages before it. All of
// them are within one bound; the least recently used go first. Thread-safe.
#ifndef ENGINE_FACADE_STAGE_PLANS_H_
#define ENGINE_FACADE_STAGE_PLANS_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/base/precision.h"
#include "engine/cache/primitive_cache.h"
#include "engine/engine.h"
#include "engine/onnx/stages/cut.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/plan.h"
#include "engine/runtime/step_times.h"
#include "engine/threading/arena.h"
#include "engine/threading/scratchpad.h"
#include "engine/threading/single_flight_cache.h"

namespace tilewire {

// Shared by all models of an engine; outlives them.
struct EngineShared {
  explicit EngineShared(const EngineOptions& resolved)
      : options(resolved), arena(resolved.threads), cache(resolved.primitive_cache_bytes) {}

  const EngineOptions options;
  threading::Arena arena;
  PrimitiveCache cache;
  ScratchpadPool scratchpads;
  std::atomic<int64_t> stage_plans = 0, staged_runs = 0;                       // StageCounts
  std::atomic<int64_t> plans_kept = 0, plans_built = 0, plan_building_ns = 0;  // PlanCounts

  // The threads that a request may compute on.
  threading::Team TeamFor(const RunOptions& run) {
    const threading::Team all(&arena, options.threads_per_request);
    return (run.serial ? threading::Team::Serial() : all).Until(run.stop);
  }
};

// The part of LoadOptions that is of a model's layers, with the precision resolved.
struct LayerOptions {
  Precision precision = Precision::kExact;
  std::map<std::string, Precision> node_precisions;
  std::map<std::string, std::string> node_rows;
  bool tries_rows = false;
};

struct PlannedStage {
  std::shared_ptr<const runtime::Plan> plan;  // null: nothing has to be run before the cut
  std::shared_ptr<const reader::Cut> cut;     // null: the plan is the whole model
  std::shared_ptr<runtime::StepTimes> times;  // of the plan's runs; null without a plan
  int64_t HeldBytes() const {
    return (plan != nullptr ? plan->HeldBytes() + times->HeldBytes() : 0) +
           (cut != nullptr ? cut->HeldBytes() : 0);
  }
};
using PlannedStagePtr = std::shared_ptr<const PlannedStage>;

class StagePlans {
 public:
  static constexpr size_t kPlans = 32;

  // The inputs that a plan is made for: the dims of each input, then the bytes of each input that
  // decides shapes, as numbers; for each later stage, what StagedRun (staged_run.h) adds to that.
  using Key = std::vector<Dims>;

  // `elements_decide_sizes`: whether sizes may come from elements, of inputs or computed ones.
  StagePlans(EngineShared* shared, bool elements_decide_sizes, LayerOptions layers);

  // The plan for the key, which is made of what `build` returns. A request never waits for the plan
  // of another key. Errors are those of `build` and lowering::LowerNetwork(), and what
  // `options.between_steps` returned; one request's end does not end others that wait for the
  // same plan.
  absl::StatusOr<PlannedStagePtr> GetOrMake(
      const Key& key, const LoadOptions& options,
      absl::FunctionRef<absl::StatusOr<reader::Stage>()> build);
  // The plan of a stage, which is not kept; its packed weights are.
  absl::StatusOr<PlannedStagePtr> MakeOnce(reader::Stage stage, const LoadOptions& options) {
    return Make(options, [&]() -> absl::StatusOr<reader::Stage> { return std::move(stage); });
  }
  // Null until it is made.
  PlannedStagePtr Peek(const Key& key) const { return plans_.Peek(key); }
  // The keys of the plans that are made and kept, the last used first.
  std::vector<Key> Keys() const { return plans_.Keys(); }
  // The bytes of the plans that are kept and of the packed weights.
  int64_t HeldBytes() const { return plans_.bytes() + weights_.HeldBytes(); }
  // Gives the bytes of constants and packed weights back to the system (runtime/page_release.h). No
  // plan may be run any more.
  void Release(absl::FunctionRef<void()> between) const;

 private:
  absl::StatusOr<PlannedStagePtr> Make(const LoadOptions& options,
                                       absl::FunctionRef<absl::StatusOr<reader::Stage>()> build);

  absl::StatusOr<std::shared_ptr<const runtime::Plan>> Lower(const network::Network& network,
                                                             const LoadOptions& options);
  // Counts a plan that was built in this time, and uncounts it when it is freed.
  PlannedStagePtr Counted(std::unique_ptr<PlannedStage> built, absl::Duration building);

  EngineShared& shared_;
  const bool elements_decide_sizes_;
  const LayerOptions layers_;
  runtime::PackedWeights weights_;
  threading::SingleFlightCache<PlannedStage, Key> plans_;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_STAGE_PLANS_H_
