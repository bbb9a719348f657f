// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/lowering/operations/normalized_sum.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// The primitive takes scale and shift as one tensor, one after the other.
absl::StatusOr<Bindings> ScaleAndShift(const network::LayerNormalization& norm,
                                       OperationContext& context) {
  Bindings weights;
  if (norm.reads_parameters) {
    ABSL_ASSIGN_OR_RETURN(const Place both,
                          PackScaleAndShift(context.src(1), context.src(2), context));
    for (size_t i : {1, 2}) context.plan().Consume(context.src(i));
    weights.push_back({kArgWeights, both.buffer});
    return weights;
  }
  if (norm.scale.empty()) return weights;
  std::vector<float> both = norm.scale;
  both.insert(both.end(), norm.shift.begin(), norm.shift.end());
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc row,
                        runtime::PlainDesc({static_cast<int64_t>(both.size())}, DataType::kF32,
                                           /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto packed, context.settings().weights->PackBias(both, row));
  weights.push_back(context.plan().Constant(kArgWeights, std::move(packed)));
  return weights;
}

bool ReadsAsRows(const network::Network& network, const network::Operation& norm, ValueId value) {
  if (norm.srcs[0] == value) return true;
  for (const network::Operation& op : network.operations) {
    if (op.dst == norm.srcs[0])
      return std::holds_alternative<network::Reshape>(op.params) && op.srcs[0] == value;
  }
  return false;
}

const network::Operation* NormalizationOf(const network::Network& network, ValueId value) {
  for (const network::Operation& op : network.operations) {
    const auto* norm = std::get_if<network::LayerNormalization>(&op.params);
    const bool takes_sum = norm != nullptr && !norm->reads_parameters && !norm->saves_statistics;
    if (takes_sum && ReadsAsRows(network, op, value)) return &op;
  }
  return nullptr;
}

// Over a source that nothing else reads, unless the other one is elsewhere in the same memory.
Place PlaceOfSum(const std::vector<Place>& sources, const MemoryDesc& desc, PlanBuilder& plan) {
  const bool apart = sources[0].buffer == sources[1].buffer ||
                     !plan.MayOverlap(sources[0].buffer, sources[1].buffer);
  for (const Place& source : sources) {
    if (apart && plan.MayOverwrite(source)) return {source.buffer, desc};
  }
  return plan.NewPlace(desc);
}

}  // namespace

// In row-major order: the generated code wants the elements that it normalizes together to be
// neighbours in memory.
absl::Status LowerLayerNormalization(const network::LayerNormalization& norm,
                                     OperationContext& context) {
  if (!context.plan().IsUnplaced(context.dst())) {  // computed with the sum that it normalizes
    context.ConsumeSources();
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src()));
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        context.Create(LayerNormalizationDesc{
                            .prop_kind = norm.saves_statistics ? PropKind::kForwardTraining
                                                               : PropKind::kForwardInference,
                            .src = src.desc,
                            .dst = src.desc,
                            .epsilon = norm.epsilon,
                            .use_scale_shift = norm.reads_parameters || !norm.scale.empty()}));
  ABSL_ASSIGN_OR_RETURN(Bindings bindings, ScaleAndShift(norm, context));
  std::vector<Place> statistics;
  for (int arg : {kArgMean, kArgVariance}) {
    if (!norm.saves_statistics) break;
    statistics.push_back(context.plan().NewPlace(primitive->Desc(arg)));
    bindings.push_back({arg, statistics.back().buffer});
  }
  ABSL_RETURN_IF_ERROR(context.EmitUnaryInPlace(std::move(primitive), src, std::move(bindings)));
  for (size_t i = 0; i < statistics.size(); ++i)
    context.plan().Bind(context.more_dst(i), statistics[i]);
  return absl::OkStatus();
}

absl::StatusOr<bool> LowerNormalizedSum(const std::vector<Place>& sources,
                                        OperationContext& context) {
  const network::Operation* op = NormalizationOf(context.network(), context.dst());
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, context.RowMajorDesc(context.dst()));
  if (op == nullptr || sources.size() != 2 || plain.data_type() != DataType::kF32) return false;
  for (const Place& source : sources) {
    if (!runtime::SameMemory(source.desc, plain)) return false;
  }
  const auto& norm = std::get<network::LayerNormalization>(op->params);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc rows, context.RowMajorDesc(op->dst));
  ABSL_ASSIGN_OR_RETURN(
      auto primitive, context.Create(LayerNormalizationDesc{.src = rows,
                                                            .dst = rows,
                                                            .epsilon = norm.epsilon,
                                                            .use_scale_shift = !norm.scale.empty(),
                                                            .addend = rows,
                                                            .sum = rows}));
  ABSL_ASSIGN_OR_RETURN(Bindings bindings, ScaleAndShift(norm, context));
  context.ConsumeSources();
  const Place sum = PlaceOfSum(sources, plain, context.plan());
  const Place dst = context.plan().NewPlace(rows);
  bindings.push_back({kArgSrc, sources[0].buffer});
  bindings.push_back({kArgSrc1, sources[1].buffer});
  bindings.push_back({kArgMultipleDst, sum.buffer});
  bindings.push_back({kArgDst, dst.buffer});
  context.Emit(std::move(primitive), std::move(bindings), absl::StrCat("and ", op->name));
  ABSL_RETURN_IF_ERROR(context.BindResult(sum));
  context.plan().Bind(op->dst, dst);
  return true;
}

}  // namespace tilewire::lowering
