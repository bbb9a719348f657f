// SPDX-License-Identifier: Apache-2.0
//
// The time of each layer in an exact model, and where all are bf16 or int8, from the steps of their
// plans. The time of a step that runs several nodes is shared out evenly among them; that of a
// conversion among the layers that read its result. Pure functions.
#ifndef ENGINE_TUNING_LAYER_TIMES_H_
#define ENGINE_TUNING_LAYER_TIMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "engine/explanation.h"
#include "engine/tuner.h"
#include "engine/tuning/layers.h"

namespace tilewire::tuning {

struct LayerTime {
  absl::Duration exact, bf16, int8;

  absl::Duration Of(TunedPrecision precision) const {
    return precision == TunedPrecision::kInt8   ? int8
           : precision == TunedPrecision::kBf16 ? bf16
                                                : exact;
  }
};

// By node, as steps name them; reorders count to the node that wants them.
absl::flat_hash_map<std::string, absl::Duration> TimesByNode(const Explanation& explanation);

// Each step of `least`, and the whole, takes the less of both times. `least` without steps becomes
// `explanation`; else both are of one plan.
void TakeLeast(Explanation explanation, Explanation* least);

// `bf16` and `int8` may be null: zeros.
std::vector<LayerTime> TimesOf(const std::vector<Layer>& layers, const Explanation& exact,
                               const Explanation* bf16, const Explanation* int8);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_LAYER_TIMES_H_
