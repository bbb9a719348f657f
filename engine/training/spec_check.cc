// SPDX-License-Identifier: Apache-2.0
#include "engine/training/spec_check.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"

namespace tilewire::training {
namespace {

absl::Status Refused(absl::string_view name, double value, absl::string_view allowed) {
  return InvalidArgument(name, ": ", value, "; allowed: ", allowed);
}

absl::Status CheckNotNegative(absl::string_view name, double value) {
  if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
  return Refused(name, value, "0 and positive numbers");
}
absl::Status CheckPositive(absl::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return Refused(name, value, "positive numbers");
}
absl::Status CheckFraction(absl::string_view name, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return Refused(name, value, "0 to below 1");
}
absl::Status CheckCount(absl::string_view name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return InvalidArgument(name, ": ", value, "; allowed: ", least, " and more");
}

absl::Status CheckLoss(const LossSpec& loss) {
  ABSL_RETURN_IF_ERROR(CheckPositive("factor", loss.factor));
  ABSL_RETURN_IF_ERROR(CheckPositive("delta", loss.delta));
  ABSL_RETURN_IF_ERROR(CheckFraction("label_smoothing", loss.label_smoothing));
  double sum = 0;
  for (size_t c = 0; c < loss.class_weights.size(); ++c) {
    ABSL_RETURN_IF_ERROR(
        CheckNotNegative(absl::StrCat("class_weights[", c, "]"), loss.class_weights[c]));
    sum += loss.class_weights[c];
  }
  if (!loss.class_weights.empty() && sum == 0)
    return InvalidArgument("class_weights: all are 0; one at least must be positive");
  const absl::string_view name = functions::AlgorithmName(loss.kind);
  const bool takes_labels = loss.kind == LossSpec::Kind::kSoftmaxCrossEntropy;
  if (loss.label_smoothing != 0 && !takes_labels)
    return InvalidArgument("label_smoothing: ", name, " has none; softmax_cross_entropy has");
  if (loss.ignore_index.has_value() && !takes_labels)
    return InvalidArgument("ignore_index: ", name,
                           " has no labels; softmax_cross_entropy has them");
  if (loss.class_weights.empty() || functions::HasClassWeights(loss.kind)) return absl::OkStatus();
  return InvalidArgument("class_weights: ", name,
                         " has none; softmax_cross_entropy and binary_cross_entropy have");
}

absl::Status CheckLosses(const TrainingSpec& spec) {
  if (spec.losses.empty()) return InvalidArgument("losses: there are none; at least one is needed");
  for (size_t i = 0; i < spec.losses.size(); ++i) {
    const absl::Status status = CheckLoss(spec.losses[i]);
    if (!status.ok()) return InvalidArgument("losses[", i, "]: ", status.message());
  }
  return absl::OkStatus();
}

absl::Status CheckOptimizer(const OptimizerSpec& optimizer) {
  ABSL_RETURN_IF_ERROR(CheckNotNegative("optimizer: momentum", optimizer.momentum));
  ABSL_RETURN_IF_ERROR(CheckNotNegative("optimizer: dampening", optimizer.dampening));
  ABSL_RETURN_IF_ERROR(CheckFraction("optimizer: beta1", optimizer.beta1));
  ABSL_RETURN_IF_ERROR(CheckFraction("optimizer: beta2", optimizer.beta2));
  ABSL_RETURN_IF_ERROR(CheckPositive("optimizer: epsilon", optimizer.epsilon));
  ABSL_RETURN_IF_ERROR(CheckNotNegative("optimizer: weight_decay", optimizer.weight_decay));
  // As an f32 it is added to roots that may be 0.
  if (static_cast<float>(optimizer.epsilon) < 1e-37f)
    return Refused("optimizer: epsilon", optimizer.epsilon, "1e-37 and more");
  const bool may_look_ahead = optimizer.momentum > 0 && optimizer.dampening == 0;
  if (!optimizer.nesterov || may_look_ahead) return absl::OkStatus();
  return InvalidArgument(
      "optimizer: nesterov needs a momentum above 0 and no dampening; these are ",
      optimizer.momentum, " and ", optimizer.dampening);
}

absl::Status CheckSchedule(const ScheduleSpec& schedule) {
  ABSL_RETURN_IF_ERROR(CheckNotNegative("schedule: rate", schedule.rate));
  ABSL_RETURN_IF_ERROR(CheckCount("schedule: warm_up", schedule.warm_up, 0));
  ABSL_RETURN_IF_ERROR(CheckCount("schedule: every", schedule.every, 1));
  ABSL_RETURN_IF_ERROR(CheckCount("schedule: updates", schedule.updates, 1));
  ABSL_RETURN_IF_ERROR(CheckNotNegative("schedule: factor", schedule.factor));
  ABSL_RETURN_IF_ERROR(CheckPositive("schedule: power", schedule.power));
  if (schedule.least >= 0 && schedule.least <= schedule.rate) return absl::OkStatus();
  return Refused("schedule: least", schedule.least, absl::StrCat("0 to the rate, ", schedule.rate));
}

}  // namespace

absl::Status CheckSpec(const TrainingSpec& spec) {
  ABSL_RETURN_IF_ERROR(CheckLosses(spec));
  ABSL_RETURN_IF_ERROR(CheckOptimizer(spec.optimizer));
  ABSL_RETURN_IF_ERROR(CheckSchedule(spec.schedule));
  ABSL_RETURN_IF_ERROR(CheckNotNegative("clip_value", spec.clip_value));
  ABSL_RETURN_IF_ERROR(CheckNotNegative("clip_norm", spec.clip_norm));
  ABSL_RETURN_IF_ERROR(CheckFraction("average", spec.average));
  for (const ParameterGroup& group : spec.groups) {
    const std::string name = absl::StrCat("group '", group.pattern, "': ");
    ABSL_RETURN_IF_ERROR(CheckNotNegative(absl::StrCat(name, "rate_factor"), group.rate_factor));
    ABSL_RETURN_IF_ERROR(
        CheckNotNegative(absl::StrCat(name, "weight_decay"), group.weight_decay.value_or(0)));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::training
