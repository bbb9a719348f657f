// SPDX-License-Identifier: Apache-2.0
//
// Normalizations, and products of two computed tensors.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {

using graph::Operation;
using Place = PlanBuilder::Place;

absl::Status Lowering::Lower(const Operation& op, const graph::Lrn& lrn) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.DenseHome(op.srcs[0], op.name));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(LrnDesc{.src = src.desc,
                                                                .dst = src.desc,
                                                                .local_size = lrn.size,
                                                                .alpha = lrn.alpha,
                                                                .beta = lrn.beta,
                                                                .k = lrn.k}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/false);
}

// Row-major, as the generated code wants it: what is normalized follows each other in memory.
absl::Status Lowering::Lower(const Operation& op, const graph::LayerNormalization& norm) {
  const graph::Value& value = builder_.value(op.srcs[0]);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.InLayout(op.srcs[0], desc, op.name));
  const bool scales = !norm.scale.empty();
  ABSL_ASSIGN_OR_RETURN(
      auto primitive,
      builder_.Create(LayerNormalizationDesc{
          .src = desc, .dst = desc, .epsilon = norm.epsilon, .use_scale_shift = scales}));
  Bindings weights;
  if (scales) {
    std::vector<float> both = norm.scale;
    both.insert(both.end(), norm.shift.begin(), norm.shift.end());
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc row, PlainDesc({static_cast<int64_t>(both.size())},
                                                          value.type, /*channels_last=*/false));
    ABSL_ASSIGN_OR_RETURN(auto packed, builder_.context().weights->PackBias(both, row));
    weights.push_back(builder_.Constant(kArgWeights, std::move(packed)));
  }
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/true, std::move(weights));
}

absl::Status Lowering::Lower(const Operation& op, const graph::Matmul&) {
  const graph::Value& value = builder_.value(op.dst);
  const size_t rank = value.dims.size();
  ABSL_ASSIGN_OR_RETURN(const Place a, RowMajorOfRank(op.srcs[0], rank, op));
  ABSL_ASSIGN_OR_RETURN(const Place b, RowMajorOfRank(op.srcs[1], rank, op));
  MatmulDesc desc{.src = a.desc, .weights = b.desc};
  ABSL_ASSIGN_OR_RETURN(desc.dst, PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  for (graph::ValueId src : op.srcs) builder_.Consume(src);
  const Place dst = builder_.NewPlace(desc.dst);
  builder_.Emit(op.name, std::move(primitive),
                {{kArgSrc, a.buffer}, {kArgWeights, b.buffer}, {kArgDst, dst.buffer}});
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
