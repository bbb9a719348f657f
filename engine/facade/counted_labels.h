// SPDX-License-Identifier: Apache-2.0
//
// Labels that count in the losses of a batch. Pure; thread-safe.
#ifndef ENGINE_FACADE_COUNTED_LABELS_H_
#define ENGINE_FACADE_COUNTED_LABELS_H_

#include <vector>

#include "absl/types/span.h"
#include "engine/model.h"
#include "engine/training/training_spec.h"

namespace tilewire {

// Whether a loss of the batch is the mean of nothing: each of its labels is ignored, or of a class
// whose weight is 0. `specs` are of the targets, which a run has checked, with their types.
bool LacksLabels(const std::vector<LossSpec>& losses, const std::vector<TensorSpec>& specs,
                 absl::Span<const InputTensor> targets);

}  // namespace tilewire

#endif  // ENGINE_FACADE_COUNTED_LABELS_H_
