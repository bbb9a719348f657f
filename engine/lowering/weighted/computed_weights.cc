// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/computed_weights.h"

#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

bool HasDimsOf(const MemoryDesc& packed, ValueId weights, const OperationContext& context) {
  return packed.dims() == context.value(weights).dims;
}

}  // namespace

absl::Status SettleParameter(ConvolutionDesc desc, ValueId weights, OperationContext& context) {
  const bool is_new = context.plan().IsParameter(weights) && context.plan().IsUnplaced(weights);
  if (!is_new || !HasDimsOf(desc.weights, weights, context)) return absl::OkStatus();
  desc.prop_kind = PropKind::kBackwardWeights;
  desc.algorithm = ConvolutionAlgorithm::kDirect;
  ABSL_ASSIGN_OR_RETURN(const auto gradient, context.Create(desc));
  return context.InLayout(weights, gradient->Desc(kArgDiffWeights)).status();
}

absl::StatusOr<MemoryDesc> PlainWeights(ValueId weights, int64_t groups,
                                        const OperationContext& context) {
  return runtime::PlainDesc(GroupedDims(context.value(weights).dims, groups), DataType::kF32,
                            /*channels_last=*/false);
}

absl::StatusOr<Place> WeightsAtHome(ValueId weights, int64_t groups, OperationContext& context) {
  if (groups == 1 && context.plan().IsParameter(weights)) return context.Home(weights);
  ABSL_ASSIGN_OR_RETURN(const Place plain, context.RowMajor(weights));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, PlainWeights(weights, groups, context));
  return Place{plain.buffer, desc};
}

ConvolutionAlgorithm AlgorithmOfGradient(const OperationContext& context) {
  const ConvolutionAlgorithm algorithm = context.settings().convolution_algorithm;
  return algorithm == ConvolutionAlgorithm::kAuto ? ConvolutionAlgorithm::kTraining : algorithm;
}

absl::StatusOr<Place> PackInRun(ValueId weights, const MemoryDesc& packed,
                                OperationContext& context) {
  if (context.plan().IsParameter(weights) && HasDimsOf(packed, weights, context))
    return context.InLayout(weights, packed);
  ABSL_ASSIGN_OR_RETURN(const Place given, context.RowMajor(weights));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        runtime::PlainDesc(packed.dims(), context.value(weights).type,
                                           /*channels_last=*/false));
  if (runtime::SameMemory(plain, packed)) return Place{given.buffer, packed};
  return context.Copy({given.buffer, plain}, packed,
                      "packs weights that are computed, in every run");
}

const network::Operation* ActivationOf(const OperationContext& context) {
  if (context.remaining_uses(context.dst()) != 1) return nullptr;
  for (const network::Operation& op : context.network().operations) {
    if (std::holds_alternative<network::Activation>(op.params) && op.srcs[0] == context.dst())
      return &op;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<const Primitive>> CreateWithActivation(
    const OpDesc& desc, const network::Operation** activation, OperationContext& context) {
  Attributes attributes;
  if (*activation != nullptr) {
    const auto& op = std::get<network::Activation>((*activation)->params).op;
    const bool taken = attributes.post_ops.Append(EltwisePostOp{op}).ok();
    auto primitive = context.Create(desc, attributes);
    if (taken && primitive.ok() && !(*primitive)->info().traits.is_reference) return primitive;
  }
  *activation = nullptr;
  return context.Create(desc);
}

absl::Status EmitComputed(std::shared_ptr<const Primitive> primitive, const Place& src,
                          const Place& weights, const network::Operation* activation,
                          OperationContext& context) {
  Bindings more = {{kArgWeights, weights.buffer}};
  if (context.srcs().size() > 2) {
    ABSL_ASSIGN_OR_RETURN(const Place bias,
                          context.InLayout(context.src(2), primitive->Desc(kArgBias)));
    more.push_back({kArgBias, bias.buffer});
  }
  for (size_t i = 1; i < context.srcs().size(); ++i) context.plan().Consume(context.src(i));
  ABSL_RETURN_IF_ERROR(context.EmitUnary(std::move(primitive), src, std::move(more)));
  if (activation == nullptr) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const Place dst, context.Home(context.dst()));
  context.plan().Bind(activation->dst, dst);
  return absl::OkStatus();
}

}  // namespace tilewire::lowering
