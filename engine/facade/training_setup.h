// SPDX-License-Identifier: Apache-2.0
//
// The settings of a trainer, judged by the model that it is for. Pure; thread-safe.
#ifndef ENGINE_FACADE_TRAINING_SETUP_H_
#define ENGINE_FACADE_TRAINING_SETUP_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/onnx/onnx_model.h"
#include "engine/trainer.h"

namespace tilewire {

// The treatment of one parameter by the optimizer.
struct ParameterSettings {
  double rate_factor = 1;
  double weight_decay = 0;
};

struct TrainingSetup {
  std::vector<ParameterSpec> parameters;
  absl::flat_hash_map<std::string, ParameterSettings> settings;  // by name; of all that learn
  absl::flat_hash_set<std::string> frozen;
  std::vector<int> outputs;  // of each loss, into the model's
  std::vector<TensorSpec> targets;
};

//   kInvalidArgument  numbers out of range (training::CheckSpec()), a pattern that matches no
//                     parameter, an output that the model does not have, nothing that learns
absl::StatusOr<TrainingSetup> SetUpTraining(const reader::OnnxModel& model,
                                            const TrainingSpec& spec);

}  // namespace tilewire

#endif  // ENGINE_FACADE_TRAINING_SETUP_H_
