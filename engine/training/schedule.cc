// SPDX-License-Identifier: Apache-2.0
#include "engine/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewire::training {

double RateOf(const ScheduleSpec& schedule, int64_t update) {
  const double rate = schedule.rate;
  if (update < schedule.warm_up)
    return rate * static_cast<double>(update + 1) / static_cast<double>(schedule.warm_up);
  const int64_t since = update - schedule.warm_up;
  const double done =
      std::min(1.0, static_cast<double>(since) / static_cast<double>(schedule.updates));
  const double above = rate - schedule.least;
  switch (schedule.kind) {
    case ScheduleSpec::Kind::kConstant:
      return rate;
    case ScheduleSpec::Kind::kSteps:
      return rate * std::pow(schedule.factor, static_cast<double>(since / schedule.every));
    case ScheduleSpec::Kind::kCosine:
      return schedule.least + above * (1 + std::cos(std::numbers::pi * done)) / 2;
    case ScheduleSpec::Kind::kPolynomial:
      return schedule.least + above * std::pow(1 - done, schedule.power);
  }
  return rate;
}

}  // namespace tilewire::training
