// SPDX-License-Identifier: Apache-2.0
//
// The plans of a trainer: for updates and evaluations, by the shape of a batch. All read and write
// one store of parameters. The least recently used go first. Thread-compatible.
#ifndef ENGINE_FACADE_TRAINING_PLANS_H_
#define ENGINE_FACADE_TRAINING_PLANS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/facade/stage_plans.h"
#include "engine/facade/training_network.h"
#include "engine/runtime/packed_weights.h"
#include "engine/runtime/parameter_store.h"
#include "engine/runtime/plan.h"
#include "engine/trainer.h"

namespace tilewire {

// Running statistics, in the store, and which outputs of the plan are the batch's.
struct PlannedStatistics {
  int mean = 0, variance = 0;
  int batch_mean = 0, batch_variance = 0;
  float momentum = 0;
  int64_t elements = 0;
};

// A mask of dropout: an input of the plan after the model's own, in this order.
struct PlannedMask {
  network::DropoutMask mask;
  Dims dims;
};

struct TrainingPlan {
  std::shared_ptr<const runtime::Plan> plan;
  int losses = 0;                             // outputs of an update begin with them
  std::vector<int> learning;                  // of the store, with the gradients of a run
  std::vector<PlannedStatistics> statistics;  // of an update, and where they are the purpose
  std::vector<PlannedMask> masks;             // of an update
  std::vector<TensorSpec> targets;            // with the types that the plan reads
  std::vector<std::string> notes;             // of an update (training_notes.h)
  std::vector<ElementBounds> bounds;          // of an update (element_bounds.h)
};

class TrainingPlans {
 public:
  static constexpr size_t kPlans = 8;
  // kOutputs: an evaluation without losses; kStatistics: those of normalizations alone.
  enum class Purpose { kUpdate, kEvaluation, kOutputs, kStatistics };

  TrainingPlans(TrainingSource source, EngineShared* shared);

  // The plan, made if it is not there. Errors are those of training_network.h and
  // lowering::LowerNetwork(), and what `interrupted` returned.
  absl::StatusOr<std::shared_ptr<const TrainingPlan>> GetOrMake(
      Purpose purpose, const BatchShape& shape, const std::function<absl::Status()>& interrupted);

  runtime::ParameterStore& store() { return store_; }

 private:
  struct Entry {
    Purpose purpose;
    BatchShape shape;
    std::shared_ptr<const TrainingPlan> planned;
  };

  absl::StatusOr<std::shared_ptr<const TrainingPlan>> Make(
      Purpose purpose, const BatchShape& shape, const std::function<absl::Status()>& interrupted);
  absl::StatusOr<network::Network> NetworkOf(Purpose purpose, const BatchShape& shape) const;
  absl::Status NoteStatistics(const network::Network& network, TrainingPlan* planned);

  const TrainingSource source_;
  EngineShared& shared_;
  runtime::PackedWeights weights_;
  runtime::ParameterStore store_;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_TRAINING_PLANS_H_
