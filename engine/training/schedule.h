// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of an update (ScheduleSpec). Pure; thread-safe.
#ifndef ENGINE_TRAINING_SCHEDULE_H_
#define ENGINE_TRAINING_SCHEDULE_H_

#include <cstdint>

#include "engine/training/training_spec.h"

namespace tilewire::training {

// The rate of update 0, 1, ...; the spec has been checked.
double RateOf(const ScheduleSpec& schedule, int64_t update);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_SCHEDULE_H_
