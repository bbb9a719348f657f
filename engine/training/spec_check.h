// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a TrainingSpec. What depends on a model, as names and class weights do, is checked
// where there is one. Pure; thread-safe.
#ifndef ENGINE_TRAINING_SPEC_CHECK_H_
#define ENGINE_TRAINING_SPEC_CHECK_H_

#include "absl/status/status.h"
#include "engine/training/training_spec.h"

namespace tilewire::training {

//   kInvalidArgument  a number out of range; the message names it, its value and what is allowed
absl::Status CheckSpec(const TrainingSpec& spec);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_SPEC_CHECK_H_
