// SPDX-License-Identifier: Apache-2.0
//
// The networks of a trainer, for batches of one shape: that of an update, which is forward, losses
// and gradients, and that of an evaluation, which normalizes by the running statistics, drops
// nothing and leaves gradients out. Inputs are the model's own, then masks of dropout, then
// targets. Pure functions; thread-safe.
#ifndef ENGINE_FACADE_TRAINING_NETWORK_H_
#define ENGINE_FACADE_TRAINING_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/network/network.h"
#include "engine/onnx/onnx_model.h"
#include "engine/training/training_spec.h"

namespace tilewire {

// The targets of a loss: their type follows from dims and bytes.
struct GivenTargets {
  Dims dims;
  int64_t bytes = 0;
};

// A batch's shape, and what a model's networks are made from.
struct BatchShape {
  std::vector<Dims> inputs;
  std::vector<GivenTargets> targets;  // one per loss; none: those that fit the outputs

  bool operator==(const BatchShape& other) const;
};
struct TrainingSource {
  const reader::OnnxModel& model;
  const TrainingSpec& spec;
  const absl::flat_hash_set<std::string>& frozen;  // names of parameters
  std::vector<int> outputs;                        // of each loss, into the model's
};

// Outputs are the losses, then the means and variances of Network::statistics, in turn.
//   kInvalidArgument  targets that do not fit an output, no parameter that a loss depends on; and
//                     as OnnxModel::SpecializeForTraining()
//   kUnimplemented    as OnnxModel::SpecializeForTraining() and network::Differentiate()
absl::StatusOr<network::Network> NetworkOfUpdate(const TrainingSource& source,
                                                 const BatchShape& shape);

// Forward alone, by the statistics of the batch, which are the outputs: the means and variances of
// Network::statistics, in turn. Drops nothing.
//   kInvalidArgument  there are none; and as OnnxModel::SpecializeForTraining()
absl::StatusOr<network::Network> NetworkOfStatistics(const TrainingSource& source,
                                                     const BatchShape& shape);

// Outputs are the model's, then the losses if `has_losses`.
absl::StatusOr<network::Network> NetworkOfEvaluation(const TrainingSource& source,
                                                     const BatchShape& shape, bool has_losses);

}  // namespace tilewire

#endif  // ENGINE_FACADE_TRAINING_NETWORK_H_
