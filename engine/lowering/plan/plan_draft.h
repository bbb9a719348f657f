// SPDX-License-Identifier: Apache-2.0
//
// A plan while it is being built, with what is known about its values and buffers beyond the plan
// itself. PlanBuilder fills it; Restride() changes strides in it. Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_PLAN_DRAFT_H_
#define ENGINE_LOWERING_PLAN_PLAN_DRAFT_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/aligned_buffer.h"
#include "engine/lowering/plan/primitive_request.h"
#include "engine/memory/memory_desc.h"
#include "engine/network/network.h"
#include "engine/runtime/plan.h"

namespace tilewire::lowering {

// The names of networks and plans that lowering uses.
using network::ValueId;
using runtime::Binding;
using runtime::Bindings;
using runtime::InputVariant;
using runtime::Plan;
using runtime::PlanBuffer;
using runtime::PlanInput;
using runtime::PlanOutput;
using runtime::Step;

// Where a value is: the buffer that holds it and its layout there. A value may be in several places
// at once, each in another layout; the first of them is its home.
struct Place {
  int buffer = -1;
  MemoryDesc desc;
};

// Parts begin on multiples of so many bytes.
inline constexpr int64_t kPartAlignment = AlignedBuffer::kAlignment;

// Where a part begins in the tensor that it is a part of: at an index along one dimension, and at 0
// along the others.
struct PartBegin {
  int axis = 0;
  int64_t index = 0;  // of an element, the first of a block
};

// The bytes before the part in a tensor that is nested and blocked as `layout` and has `strides`.
int64_t BytesBefore(const PartBegin& begin, const MemoryDesc& layout, const Dims& strides);

struct PlanDraft {
  Plan plan;
  PrimitiveRequests requests;  // what each primitive was created from
  // Per value: its home, then its copies in other layouts. Empty for an input of the network that
  // no operation has read yet.
  std::vector<absl::InlinedVector<Place, 2>> places;
  // Per buffer that is not a part of another one: the values that it and its parts hold.
  std::vector<std::vector<ValueId>> buffer_values;
  // Per buffer: where it begins, if it is a part of another one.
  std::vector<PartBegin> part_begins;
};

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_PLAN_DRAFT_H_
