// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

bool HasDimsOf(const MemoryDesc& packed, ValueId weights, const OperationContext& context) {
  return packed.dims() == context.value(weights).dims;
}

// A parameter of one group that nothing has read settles in the layout in which its gradient is
// computed: direct rows read that one too, others a copy that is packed in every run.
absl::Status SettleParameter(ConvolutionDesc desc, OperationContext& context) {
  const ValueId weights = context.src(1);
  const bool is_new = context.plan().IsParameter(weights) && context.plan().IsUnplaced(weights);
  if (!is_new || !HasDimsOf(desc.weights, weights, context)) return absl::OkStatus();
  desc.prop_kind = PropKind::kBackwardWeights;
  desc.algorithm = ConvolutionAlgorithm::kDirect;
  ABSL_ASSIGN_OR_RETURN(const auto gradient, context.Create(desc));
  return context.InLayout(weights, gradient->Desc(kArgDiffWeights)).status();
}

// The value, seen with the dims of `packed`, in that layout.
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

// By Winograd for parameters alone: images of a batch that trains share the transform of the
// weights, which for a single image takes longer than it gains.
absl::StatusOr<ConvolutionDesc> DescOf(const network::ComputedConvolution& convolution,
                                       OperationContext& context) {
  ConvolutionDesc desc{.strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const bool trains = context.plan().IsParameter(context.src(1));
  desc.prop_kind = trains ? PropKind::kForwardTraining : PropKind::kForwardInference;
  desc.algorithm =
      trains ? context.settings().convolution_algorithm : ConvolutionAlgorithm::kDirect;
  const Dims weights = GroupedDims(context.src_value(1).dims, convolution.groups);
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  if (context.srcs().size() > 2) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.src(2)));
  }
  return desc;
}

// The function that alone reads the result; null if something else does.
const network::Operation* ActivationOf(const OperationContext& context) {
  if (context.remaining_uses(context.dst()) != 1) return nullptr;
  for (const network::Operation& op : context.network().operations) {
    if (std::holds_alternative<network::Activation>(op.params) && op.srcs[0] == context.dst())
      return &op;
  }
  return nullptr;
}

// With the function as a post-op if the primitive takes it; else `activation` becomes null.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateWithActivation(
    const ConvolutionDesc& desc, const network::Operation** activation, OperationContext& context) {
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

}  // namespace

// The weights are computed, so that they are packed for the primitive in every run, unless they are
// a parameter whose home the primitive reads.
absl::Status LowerComputedConvolution(const network::ComputedConvolution& convolution,
                                      OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc desc, DescOf(convolution, context));
  ABSL_RETURN_IF_ERROR(SettleParameter(desc, context));
  const network::Operation* activation = ActivationOf(context);
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateWithActivation(desc, &activation, context));
  if (primitive->Desc(kArgWeights).format_kind() == FormatKind::kPlanes) {
    desc.weights = primitive->Desc(kArgWeights).Unsplit();  // it splits them itself
    ABSL_ASSIGN_OR_RETURN(primitive, CreateWithActivation(desc, &activation, context));
  }
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        context.InLayout(context.src(0), primitive->Desc(kArgSrc)));
  ABSL_ASSIGN_OR_RETURN(const Place weights,
                        PackInRun(context.src(1), primitive->Desc(kArgWeights), context));
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
