// SPDX-License-Identifier: Apache-2.0
//
// The last comparison of a choice. Times of layers leave out what conversions between them cost,
// and small models lose more by those than a layer saves; so whole models are timed in turns, the
// exact one and those of one precision among them. What is taken is therefore never slower than one
// of these that keeps the budget. Pure functions.
#ifndef ENGINE_TUNING_CHOICE_FINAL_ROUND_H_
#define ENGINE_TUNING_CHOICE_FINAL_ROUND_H_

#include <cstddef>
#include <optional>

#include "absl/types/span.h"
#include "engine/tuner.h"

namespace tilewire::tuning {

// The name of a finalist that has no precision throughout.
inline constexpr char kLayerByLayer[] = "layer by layer";

// As fast as another: then less error decides, since a time is not measured better than so.
inline constexpr double kAsFast = 1.01;
// As much faster, one that keeps the budget without its margins is worth a check.
inline constexpr double kWorthACheck = 1.05;

// The fastest of those that surely keep the budget; of those that are as fast, the one with the
// least l2. One of them at least does.
size_t FastestOf(absl::Span<const Finalist> finalists);

// The fastest of those that are not sure, if it is worth a check beside the one that was taken.
std::optional<size_t> BolderThan(absl::Span<const Finalist> finalists, size_t taken);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CHOICE_FINAL_ROUND_H_
