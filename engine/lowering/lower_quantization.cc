// SPDX-License-Identifier: Apache-2.0
//
// The two ways between real numbers and 8-bit integers, which lie with their channels last: so the
// primitives for integers read and write them.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/integer_sum_step.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/quantize_step.h"

namespace tilewire::runtime {

using graph::Operation;
using Place = PlanBuilder::Place;

// A request is taken with its channels last, whatever they were.
absl::Status Lowering::Lower(const Operation& op, const graph::Quantize& quantize) {
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                        PlainDesc(value.dims, value.type, /*channels_last=*/true));
  Place src;
  if (builder_.IsUnplaced(op.srcs[0])) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                          PlainDesc(value.dims, DataType::kF32, /*channels_last=*/true));
    ABSL_ASSIGN_OR_RETURN(src, builder_.InLayout(op.srcs[0], desc, op.name));
  } else {
    ABSL_ASSIGN_OR_RETURN(src, builder_.Home(op.srcs[0]));
  }
  ABSL_ASSIGN_OR_RETURN(auto step, CreateQuantizeStep(quantize, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Dequantize& dequantize) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutLike(src.desc, src.desc.dims()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, layout.WithDataType(DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateDequantizeStep(dequantize, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::IntegerSum& sum) {
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                        PlainDesc(value.dims, value.type, /*channels_last=*/true));
  std::vector<MemoryDesc> descs;
  std::vector<Place> sources;
  for (graph::ValueId src : op.srcs) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, dst.WithDataType(builder_.value(src).type));
    ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(src, desc, op.name));
    sources.push_back({place.buffer, desc});
    descs.push_back(desc);
  }
  ABSL_ASSIGN_OR_RETURN(auto step,
                        CreateIntegerSumStep(sum, descs, dst, builder_.context().options.max_isa));
  for (graph::ValueId src : op.srcs) builder_.Consume(src);
  const Place place = builder_.NewPlace(dst);
  builder_.Emit(op.name, std::move(step), ManySources(sources, place.buffer));
  builder_.Bind(op.dst, place);
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
