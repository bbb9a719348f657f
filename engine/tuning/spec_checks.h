// SPDX-License-Identifier: Apache-2.0
//
// Whether what is asked of a tuning fits the model, its examples and the CPU. Pure functions.
#ifndef ENGINE_TUNING_SPEC_CHECKS_H_
#define ENGINE_TUNING_SPEC_CHECKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/cpu/isa.h"
#include "engine/error_budget.h"
#include "engine/model.h"
#include "engine/tuner.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

//   kInvalidArgument     a goal, labels, or precisions that do not fit, as tuner.h says
//   kFailedPrecondition  bf16 is permitted, and `isa` has no products of it
absl::Status CheckSpec(const TuningSpec& spec, size_t examples, cpu::Isa isa);

// The output that the budget is of.
//   kInvalidArgument  there is none, or the measure does not fit it
absl::StatusOr<int> OutputOf(const ModelSignature& signature, const ErrorBudget& budget);

// `exact` are the outputs of the exact model for `examples`.
//   kInvalidArgument  no error can be told from them: not finite, no classes
absl::Status CheckExact(const TrialOutputs& exact, absl::Span<const int64_t> examples,
                        ErrorMeasure measure);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_SPEC_CHECKS_H_
