// SPDX-License-Identifier: Apache-2.0
//
// A plan while it is being built, with what is known about its values and buffers beyond the plan
// itself. PlanBuilder fills it; Restride() changes strides in it. Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_DRAFT_H_
#define ENGINE_LOWERING_PLAN_DRAFT_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/graph/network.h"
#include "engine/lowering/primitive_request.h"
#include "engine/memory/memory_desc.h"
#include "engine/runtime/plan.h"

namespace tilewire::lowering {

// Where a value is: the buffer that holds it and its layout there. A value may be in several places
// at once, each in another layout; the first of them is its home.
struct Place {
  int buffer = -1;
  MemoryDesc desc;
};

struct PlanDraft {
  runtime::Plan plan;
  PrimitiveRequests requests;  // what each primitive was created from
  // Per value: its home, then its copies in other layouts. Empty for an input of the network that
  // no operation has read yet.
  std::vector<absl::InlinedVector<Place, 2>> places;
  // Per buffer that is not a part of another one: the values that it and its parts hold.
  std::vector<std::vector<graph::ValueId>> buffer_values;
};

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_DRAFT_H_
