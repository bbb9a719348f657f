// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::StatusOr<Place> PackScaleAndShift(ValueId scale, ValueId shift, OperationContext& context) {
  ConcatDesc desc{.axis = 0};
  std::vector<Place> rows;
  for (ValueId row : {scale, shift}) {
    ABSL_ASSIGN_OR_RETURN(rows.emplace_back(), context.RowMajorOfRank(row, 2));
    desc.srcs.push_back(rows.back().desc);
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, runtime::PlainDesc({2, context.value(scale).dims[0]},
                                                     DataType::kF32, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto concat, context.Create(desc));
  const Place both = context.plan().NewPlace(desc.dst);
  Bindings bindings = MultipleSources(rows);
  bindings.push_back({kArgDst, both.buffer});
  context.Emit(std::move(concat), std::move(bindings), "scale and shift as one tensor");
  return both;
}

namespace {

constexpr int kStatistics[] = {kArgMean, kArgVariance};

absl::Status NormalizeByGiven(const BatchNormalizationDesc& desc, const Place& src,
                              Bindings bindings, OperationContext& context) {
  for (size_t i : {0, 1}) {
    ABSL_ASSIGN_OR_RETURN(const Place given, context.RowMajor(context.src(3 + i)));
    bindings.push_back({kStatistics[i], given.buffer});
    context.plan().Consume(context.src(3 + i));
  }
  return context.EmitUnaryInPlace(context.Create(desc), src, std::move(bindings));
}

// The step writes mean and variance beside the result.
absl::Status NormalizeByBatch(BatchNormalizationDesc desc, const Place& src, Bindings bindings,
                              OperationContext& context) {
  desc.prop_kind = PropKind::kForwardTraining;
  desc.use_global_stats = false;
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  Place statistics[2];
  for (size_t i : {0, 1}) {
    statistics[i] = context.plan().NewPlace(primitive->Desc(kStatistics[i]));
    bindings.push_back({kStatistics[i], statistics[i].buffer});
  }
  ABSL_RETURN_IF_ERROR(context.EmitUnaryInPlace(std::move(primitive), src, std::move(bindings)));
  for (size_t i : {0, 1}) context.plan().Bind(context.more_dst(i), statistics[i]);
  return absl::OkStatus();
}

}  // namespace

// Keeps the layout of its source.
absl::Status LowerBatchNormalization(const network::BatchNormalization& norm,
                                     OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  ABSL_ASSIGN_OR_RETURN(const Place both,
                        PackScaleAndShift(context.src(1), context.src(2), context));
  for (size_t i : {1, 2}) context.plan().Consume(context.src(i));
  const BatchNormalizationDesc desc{.src = src.desc, .dst = src.desc, .epsilon = norm.epsilon};
  Bindings bindings = {{kArgWeights, both.buffer}};
  return norm.uses_given_statistics ? NormalizeByGiven(desc, src, std::move(bindings), context)
                                    : NormalizeByBatch(desc, src, std::move(bindings), context);
}

}  // namespace tilewire::lowering
