// SPDX-License-Identifier: Apache-2.0
//
// How a model is trained: losses, the optimizer, the schedule of its rate, and
// what holds for groups of parameters.
//
//   TrainingSpec spec;
//   spec.losses = {LossSpec()};
//   spec.optimizer = {.momentum = 0.9, .weight_decay = 1e-4};
//   spec.groups = {{.pattern = "layer1.*", .frozen = true}};
#ifndef ENGINE_TRAINING_TRAINING_SPEC_H_
#define ENGINE_TRAINING_TRAINING_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/functions/loss_function.h"

namespace tilewire {

// The loss of one output. Sums over the batch are divided, if `mean`, by the weights of the labels
// that count, or by the number of elements (kSoftmaxCrossEntropy of probabilities: of positions).
struct LossSpec {
  using Kind = functions::LossFunction;
  Kind kind = Kind::kSoftmaxCrossEntropy;
  std::string output;  // its name; empty: the first output
  double factor = 1;   // in the sum of all losses
  bool mean = true;
  double delta = 1;  // kHuber; > 0
  // Both are kSoftmaxCrossEntropy's: e in [0, 1): (1 - e) target + e / C; a label that counts for
  // nothing.
  double label_smoothing = 0;
  std::optional<int64_t> ignore_index;
  std::vector<float> class_weights;  // both cross entropies; [C], or empty: 1 each
};

// As torch's optimizers of these names define them.
struct OptimizerSpec {
  enum class Kind { kSgd, kAdam, kAdamW } kind = Kind::kSgd;
  double momentum = 0, dampening = 0;  // kSgd
  bool nesterov = false;               // kSgd
  double beta1 = 0.9, beta2 = 0.999;   // the Adams
  double epsilon = 1e-8;               // the Adams; > 0
  double weight_decay = 0;             // by default not of biases and normalizations
};

// The learning rate of update u = 0, 1, ..., in double. During the first `warm_up` updates it rises
// linearly: rate * (u + 1) / warm_up; what follows counts from there.
struct ScheduleSpec {
  enum class Kind {
    kConstant,
    kSteps,       // times `factor` after every `every` updates
    kCosine,      // down to `least` at update `updates`, and then there
    kPolynomial,  // the same by (1 - u / updates)^power
  } kind = Kind::kConstant;
  double rate = 0.01;
  int64_t warm_up = 0;
  int64_t every = 1000, updates = 1000;
  double factor = 0.1, power = 1, least = 0;
};

// Parameters whose names match `pattern`, in which * stands for any characters. The first group
// that matches a parameter holds for it.
struct ParameterGroup {
  std::string pattern;
  double rate_factor = 1;
  std::optional<double> weight_decay;
  bool frozen = false;
};

struct TrainingSpec {
  std::vector<LossSpec> losses;  // at least one
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::vector<ParameterGroup> groups;
  double clip_value = 0;           // of each element of a gradient; 0: no bound
  double clip_norm = 0;            // of all gradients together; 0: no bound
  double average = 0;              // decay of the average that is evaluated and written; 0: none
  bool frozen_statistics = false;  // normalize by the file's statistics, and keep them
  uint64_t seed = 0;               // of dropout, for nodes that have none of their own
};

}  // namespace tilewire

#endif  // ENGINE_TRAINING_TRAINING_SPEC_H_
