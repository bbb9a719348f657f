// SPDX-License-Identifier: Apache-2.0
//
// Whether a plan's tensors lie inside the memory that it takes. Pure function; thread-safe.
#ifndef ENGINE_RUNTIME_PLAN_CHECK_H_
#define ENGINE_RUNTIME_PLAN_CHECK_H_

#include "absl/status/status.h"
#include "engine/runtime/plan.h"

namespace tilewire::runtime {

// kInternal: a buffer outside the arena or the buffer that it is a part of, a step without work or
// with more scratchpad than there is, or whose argument is missing or larger than what it is bound
// to, an input or output larger than its buffer, or an input's variant of a step that is not there.
absl::Status CheckPlan(const Plan& plan);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_PLAN_CHECK_H_
