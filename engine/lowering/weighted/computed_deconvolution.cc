// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/computed_weights.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using network::ComputedConvolution;

// The convolution of which the operation is the gradient by src, with the weights `any`.
absl::StatusOr<ConvolutionDesc> ConvolutionOf(const ComputedConvolution& convolution,
                                              PropKind prop_kind, const OperationContext& context) {
  ConvolutionDesc desc{.prop_kind = prop_kind,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const Dims weights = GroupedDims(context.src_value(1).dims, convolution.groups);
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.src()));
  return desc;
}

// Weights with the two dimensions of channels exchanged; one of groups may come first.
absl::StatusOr<MemoryDesc> Exchanged(const MemoryDesc& weights, int64_t groups) {
  std::vector<int> order(weights.rank());
  for (int d = 0; d < weights.rank(); ++d) order[d] = d;
  const int channels = groups > 1 ? 1 : 0;
  std::swap(order[channels], order[channels + 1]);
  return weights.Permuted(order);
}

// Whether elements of the result are beyond all windows, where the primitive has none.
bool EndsBeyondWindows(const ComputedConvolution& convolution, const OperationContext& context) {
  const Dims &src = context.src_value().dims, &weights = context.src_value(1).dims;
  for (size_t d = 0; d < convolution.strides.size(); ++d) {
    const int64_t reach = (weights[d + 2] - 1) * (convolution.dilations[d] + 1) + 1;
    const int64_t whole = (src[d + 2] - 1) * convolution.strides[d] + reach;
    const int64_t padding = convolution.padding_left[d] + convolution.padding_right[d];
    if (context.dst_value().dims[d + 2] != whole - padding) return true;
  }
  return false;
}

// The deconvolution with its bias and the function after it; null where the gradient of a
// convolution is faster, or alone can be one: that has Winograd's and more kinds of groups, but
// neither bias nor function.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateDeconvolution(
    const ComputedConvolution& convolution, const network::Operation** activation,
    OperationContext& context) {
  const bool strides = absl::c_any_of(convolution.strides, [](int64_t one) { return one > 1; });
  if (!strides || EndsBeyondWindows(convolution, context)) return nullptr;
  DeconvolutionDesc desc{.strides = convolution.strides,
                         .dilations = convolution.dilations,
                         .padding_left = convolution.padding_left,
                         .padding_right = convolution.padding_right};
  Dims weights = GroupedDims(context.src_value(1).dims, convolution.groups);
  const int channels = convolution.groups > 1 ? 1 : 0;
  std::swap(weights[channels], weights[channels + 1]);
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src()));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  if (context.srcs().size() > 2) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.src(2)));
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateWithActivation(desc, activation, context));
  return primitive->info().traits.is_reference ? nullptr : std::move(primitive);
}

// Adds the bias to what a step has just written.
absl::Status AddBias(const Place& dst, OperationContext& context) {
  Dims channels(dst.desc.rank(), 1);
  channels[1] = dst.desc.dim(1);
  ABSL_ASSIGN_OR_RETURN(const Place given, context.RowMajor(context.src(2)));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, runtime::PlainDesc(channels, DataType::kF32,
                                                                   /*channels_last=*/false));
  Place bias{given.buffer, plain};
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc wanted, runtime::LayoutLike(dst.desc, channels));
  if (!runtime::SameMemory(plain, wanted)) {
    ABSL_ASSIGN_OR_RETURN(bias, context.Copy(bias, wanted, "another layout is wanted"));
  }
  ABSL_ASSIGN_OR_RETURN(auto add, context.Create(BinaryDesc{.algorithm = BinaryAlgorithm::kAdd,
                                                            .src0 = dst.desc,
                                                            .src1 = bias.desc,
                                                            .dst = dst.desc}));
  context.Emit(std::move(add),
               {{kArgSrc, dst.buffer}, {kArgSrc1, bias.buffer}, {kArgDst, dst.buffer}});
  return absl::OkStatus();
}

absl::Status LowerAsGradient(const ComputedConvolution& convolution, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc desc,
                        ConvolutionOf(convolution, PropKind::kBackwardData, context));
  ABSL_ASSIGN_OR_RETURN(const Place weights,
                        WeightsAtHome(context.src(1), convolution.groups, context));
  desc.weights = weights.desc;
  desc.algorithm = AlgorithmOfGradient(context);
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        context.InLayout(context.src(), primitive->Desc(kArgDiffDst)));
  ABSL_RETURN_IF_ERROR(context.EmitGradient(
      std::move(primitive), {{kArgDiffDst, src.buffer}, {kArgWeights, weights.buffer}}));
  if (context.srcs().size() < 3) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const Place dst, context.Home(context.dst()));
  return AddBias(dst, context);
}

}  // namespace

// Weights are packed for the primitive in every run: a parameter stays in the layout of its
// gradient.
absl::Status LowerComputedDeconvolution(const network::ComputedDeconvolution& deconvolution,
                                        OperationContext& context) {
  const ComputedConvolution& convolution = deconvolution.convolution;
  const ValueId weights = context.src(1);
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc learns,
                        ConvolutionOf(convolution, PropKind::kBackwardWeights, context));
  ABSL_RETURN_IF_ERROR(SettleParameter(learns, weights, context));
  const network::Operation* activation = ActivationOf(context);
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateDeconvolution(convolution, &activation, context));
  if (primitive == nullptr) return LowerAsGradient(convolution, context);
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), primitive->Desc(kArgSrc)));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc exchanged,
                        Exchanged(primitive->Desc(kArgWeights), convolution.groups));
  ABSL_ASSIGN_OR_RETURN(const Place packed, PackInRun(weights, exchanged, context));
  return EmitComputed(std::move(primitive), src, packed, activation, context);
}

}  // namespace tilewire::lowering
