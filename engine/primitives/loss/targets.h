// SPDX-License-Identifier: Apache-2.0
//
// Targets of losses: labels and probabilities. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_LOSS_TARGETS_H_
#define ENGINE_PRIMITIVES_LOSS_TARGETS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "engine/primitives/loss/loss.h"

namespace tilewire::loss {

// Whether the targets are labels, of s32 or s64.
bool TakesLabels(const LossDesc& desc);

// The label at an offset in elements.
int64_t LabelAt(DataType type, const void* labels, int64_t offset);

// Whether a position with this label does not count.
bool IsIgnored(const LossDesc& desc, int64_t label);

// The weight of a class; 0 for a label that is ignored. The label is inside, or ignored.
float WeightOf(const LossDesc& desc, int64_t label);

//   kInvalidArgument  see loss.h
absl::Status CheckTargets(const LossDesc& desc, const void* targets);

// D of loss.h. The targets have been checked.
double DivisorOf(const LossDesc& desc, const void* targets);

}  // namespace tilewire::loss

#endif  // ENGINE_PRIMITIVES_LOSS_TARGETS_H_
