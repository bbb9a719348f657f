// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// The value, seen with the dims of `packed`, in that layout.
absl::StatusOr<Place> PackInRun(ValueId weights, const MemoryDesc& packed,
                                OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place given, context.RowMajor(weights));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        runtime::PlainDesc(packed.dims(), context.value(weights).type,
                                           /*channels_last=*/false));
  if (runtime::SameMemory(plain, packed)) return Place{given.buffer, packed};
  return context.Copy({given.buffer, plain}, packed,
                      "packs weights that are computed, in every run");
}

absl::StatusOr<ConvolutionDesc> DescOf(const network::ComputedConvolution& convolution,
                                       const OperationContext& context) {
  // Not by Winograd: transforming its weights takes longer than one run gains.
  ConvolutionDesc desc{.algorithm = ConvolutionAlgorithm::kDirect,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const Dims weights = GroupedDims(context.src_value(1).dims, convolution.groups);
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  if (context.srcs().size() > 2) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.src(2)));
  }
  return desc;
}

}  // namespace

// The weights are computed, so that they are packed for the primitive in every run.
absl::Status LowerComputedConvolution(const network::ComputedConvolution& convolution,
                                      OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc desc, DescOf(convolution, context));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  if (primitive->Desc(kArgWeights).format_kind() == FormatKind::kPlanes) {
    desc.weights = primitive->Desc(kArgWeights).Unsplit();  // it splits them itself
    ABSL_ASSIGN_OR_RETURN(primitive, context.Create(desc));
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
  return context.EmitUnary(std::move(primitive), src, std::move(more));
}

}  // namespace tilewire::lowering
