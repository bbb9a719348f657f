// SPDX-License-Identifier: Apache-2.0
//
// Operations that plain loops carry out where no primitive does.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/runtime/elementwise_step.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/operation_lowering.h"

namespace tilewire::runtime {

using graph::Operation;
using graph::ValueId;
using Place = PlanBuilder::Place;

// The value as it lies, or, where its rank is lower, row-major with leading dimensions of 1.
absl::StatusOr<Place> Lowering::PlaceOfRank(ValueId id, size_t rank, const Operation& op) {
  const graph::Value& value = builder_.value(id);
  if (value.dims.size() == rank) return builder_.Home(id);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(id, plain, op.name));
  Dims dims(rank - value.dims.size(), 1);
  dims.insert(dims.end(), value.dims.begin(), value.dims.end());
  ABSL_ASSIGN_OR_RETURN(MemoryDesc raised, PlainDesc(dims, value.type, /*channels_last=*/false));
  return Place{place.buffer, std::move(raised)};
}

// In the layout of the first source that is not broadcast; one of another layout is read as it
// lies.
absl::Status Lowering::Lower(const Operation& op, const graph::Elementwise& elementwise) {
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(MemoryDesc dst_desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  std::vector<MemoryDesc> descs;
  Bindings bindings;
  bool chosen = false;
  for (ValueId src : op.srcs) {
    ABSL_ASSIGN_OR_RETURN(const Place place, PlaceOfRank(src, value.dims.size(), op));
    if (!chosen && place.desc.dims() == value.dims) {
      ABSL_ASSIGN_OR_RETURN(dst_desc, LayoutLike(place.desc, value.dims));
      chosen = true;
    }
    bindings.push_back({kArgMultipleSrc + static_cast<int>(descs.size()), place.buffer});
    descs.push_back(place.desc);
  }
  for (ValueId src : op.srcs) builder_.Consume(src);
  ABSL_ASSIGN_OR_RETURN(auto step, CreateElementwiseStep(elementwise, descs, dst_desc));
  const Place dst = builder_.NewPlace(dst_desc);
  bindings.push_back({kArgDst, dst.buffer});
  builder_.Emit(op.name, std::move(step), std::move(bindings));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::Reduce& reduce) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateReduceStep(reduce, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Interpolate& interpolate) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateInterpolateStep(interpolate, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

}  // namespace tilewire::runtime
