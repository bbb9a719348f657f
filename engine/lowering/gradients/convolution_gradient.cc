// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/computed_weights.h"

namespace tilewire::lowering {
namespace {

// The values that a gradient of a convolution is about.
struct ConvolutionValues {
  ValueId src, dst;
};

// Without weights.
absl::StatusOr<ConvolutionDesc> GradientDescOf(const network::ComputedConvolution& forward,
                                               PropKind prop_kind, const ConvolutionValues& values,
                                               const OperationContext& context) {
  ConvolutionDesc desc{.prop_kind = prop_kind,
                       .algorithm = ConvolutionAlgorithm::kDirect,
                       .strides = forward.strides,
                       .dilations = forward.dilations,
                       .padding_left = forward.padding_left,
                       .padding_right = forward.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(values.src));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(values.dst));
  return desc;
}

// The layout of a gradient of weights: that of a parameter is computed where it stays, others in
// row-major order.
absl::StatusOr<MemoryDesc> LayoutOfGradient(ValueId gradient, int64_t groups,
                                            OperationContext& context) {
  const auto& parameters = context.network().parameters;
  const auto learns = absl::c_find_if(parameters, [gradient](const network::Parameter& parameter) {
    return parameter.gradient == gradient;
  });
  if (groups != 1 || learns == parameters.end()) return PlainWeights(gradient, groups, context);
  ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(learns->value));
  return home.desc;
}

// Where the terms before the result are in the Sum that alone reads it, if a step may add to them.
std::optional<Place> TermsBefore(OperationContext& context) {
  const ValueId dst = context.dst();
  if (context.remaining_uses(dst) != 1) return std::nullopt;
  for (const network::Operation& op : context.network().operations) {
    const auto term = absl::c_find(op.srcs, dst);
    if (term == op.srcs.end()) continue;
    const absl::Span<const ValueId> before =
        absl::MakeConstSpan(op.srcs).first(term - op.srcs.begin());
    const bool is_sum = std::holds_alternative<network::Sum>(op.params);
    if (!is_sum || before.empty() || context.plan().IsUnplaced(before[0])) return std::nullopt;
    absl::StatusOr<Place> place = context.Home(before[0]);
    if (!place.ok() || !context.plan().MayAddTo(*place, before)) return std::nullopt;
    return *std::move(place);
  }
  return std::nullopt;
}

// The primitive that adds to `before`; null where another row than that of `primitive` would.
std::shared_ptr<const Primitive> AddingTo(const Place& before, ConvolutionDesc desc,
                                          const Attributes& adds, const Primitive& primitive,
                                          OperationContext& context) {
  desc.src = before.desc;
  auto adding = context.Create(desc, adds);
  return adding.ok() && (*adding)->name() == primitive.name() ? *std::move(adding) : nullptr;
}

}  // namespace

absl::Status LowerConvolutionDataGradient(const network::ConvolutionDataGradient& gradient,
                                          OperationContext& context) {
  const ValueId dy = context.src(0), weights = context.src(1);
  ABSL_ASSIGN_OR_RETURN(
      ConvolutionDesc desc,
      GradientDescOf(gradient.forward, PropKind::kBackwardData, {context.dst(), dy}, context));
  ABSL_ASSIGN_OR_RETURN(const Place read, WeightsAtHome(weights, gradient.forward.groups, context));
  desc.algorithm = AlgorithmOfGradient(context);
  desc.weights = read.desc;
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place from, context.InLayout(dy, primitive->Desc(kArgDiffDst)));
  Bindings sources = {{kArgDiffDst, from.buffer}, {kArgWeights, read.buffer}};
  const std::optional<Place> before = TermsBefore(context);
  if (before) {
    Attributes adds;
    ABSL_RETURN_IF_ERROR(adds.post_ops.Append(SumPostOp{}));
    auto adding = AddingTo(*before, desc, adds, *primitive, context);
    if (adding != nullptr) {
      return context.EmitGradientOnto(*before, std::move(adding), std::move(sources),
                                      adds.post_ops);
    }
  }
  return context.EmitGradient(std::move(primitive), std::move(sources));
}

absl::Status LowerConvolutionWeightsGradient(const network::ConvolutionWeightsGradient& gradient,
                                             OperationContext& context) {
  const ValueId dy = context.src(0), src = context.src(1);
  ABSL_ASSIGN_OR_RETURN(
      ConvolutionDesc desc,
      GradientDescOf(gradient.forward, PropKind::kBackwardWeights, {src, dy}, context));
  ABSL_ASSIGN_OR_RETURN(desc.weights,
                        LayoutOfGradient(context.dst(), gradient.forward.groups, context));
  if (gradient.by_bias) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.more_dst(0)));
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place from, context.InLayout(dy, primitive->Desc(kArgDiffDst)));
  ABSL_ASSIGN_OR_RETURN(const Place read, context.InLayout(src, primitive->Desc(kArgSrc)));
  Bindings bindings = {{kArgDiffDst, from.buffer}, {kArgSrc, read.buffer}};
  context.ConsumeSources();
  if (gradient.by_bias) {
    const Place by_bias = context.plan().NewPlace(desc.bias);
    bindings.push_back({kArgDiffBias, by_bias.buffer});
    context.plan().Bind(context.more_dst(0), by_bias);
  }
  MemoryDesc layout = desc.weights;
  if (gradient.forward.groups != 1) {  // row-major, without the dimension of groups
    ABSL_ASSIGN_OR_RETURN(layout, context.RowMajorDesc(context.dst()));
  }
  const Place by_weights = context.plan().NewPlace(layout);
  bindings.push_back({kArgDiffWeights, by_weights.buffer});
  context.Emit(std::move(primitive), std::move(bindings));
  return context.BindResult(by_weights);
}

}  // namespace tilewire::lowering
