// SPDX-License-Identifier: Apache-2.0
//
// A convolution whose weights are known: weighted_operation.h tells the order of its decisions.
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/convolution_request.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using PrimitivePtr = std::shared_ptr<const Primitive>;

absl::StatusOr<ConvolutionDesc> DescOf(const network::Convolution& convolution,
                                       const Fusion& fusion, const OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src, context.AnyDesc(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc result, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc dst,
      MemoryDesc::CreateAny(ComputedDims(convolution, result.dims()), result.data_type()));
  return ConvolutionDescOf(convolution, src, dst, fusion.bias, context.precision(),
                           context.settings());
}

// Some implementations compute a pooling that follows along the way. One does both where it is
// chosen for the convolution alone; `fusion` then ends in the pooling.
absl::StatusOr<PrimitivePtr> CreateWithPooling(const network::Convolution& convolution,
                                               const ConvolutionDesc& desc, Fusion* fusion,
                                               OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(PrimitivePtr primitive, context.CreateLayer(desc, fusion->attributes));
  const ImplementationTraits& traits = primitive->info().traits;
  const bool may_pool =
      traits.takes_max_pooling && !traits.is_reference && fusion->taken == convolution.fused.size();
  Attributes pooled = fusion->attributes;
  if (!convolution.pooling || !may_pool || !pooled.post_ops.Append(MaxPoolingPostOp{}).ok()) {
    return primitive;
  }
  auto pooling = context.CreateLayer(desc, pooled);
  if (!pooling.ok() || (*pooling)->name() != primitive->name()) return primitive;
  fusion->attributes = std::move(pooled);
  return *std::move(pooling);
}

// A primitive that spares the source a reorder, if there is one; otherwise `primitive` itself.
// Where the source is a part of a larger blocked tensor, or a plain one in another order (pixels of
// an image that is transposed): the same implementation for the source as it is. Where the
// primitive would read a blocked source of few channels as a plain one: any implementation with
// generated code that takes the blocks.
absl::StatusOr<PrimitivePtr> ForSourceAsItIs(ConvolutionDesc desc, const Attributes& attributes,
                                             PrimitivePtr primitive, OperationContext& context) {
  if (context.plan().IsUnplaced(context.src())) return primitive;
  ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(context.src()));
  const MemoryDesc& wanted = primitive->Desc(kArgSrc);
  const bool is_plain = home.desc.IsPlain();
  const bool is_whole = home.desc.IsDense() && home.desc.offset0() == 0;
  if (runtime::SameMemory(home.desc, wanted)) return primitive;
  if (!wanted.IsPlain() && (is_plain || is_whole)) return primitive;
  desc.src = home.desc;
  auto as_it_is = context.CreateLayer(desc, attributes);
  if (!as_it_is.ok()) return primitive;
  const bool takes = wanted.IsPlain() && !is_plain ? !(*as_it_is)->info().traits.is_reference
                                                   : (*as_it_is)->name() == primitive->name();
  return takes ? *std::move(as_it_is) : primitive;
}

// A convolution that reads the plain bytes of a request reads them in either order, if there is an
// implementation for the other order that takes the same packed weights.
absl::Status OfferChannelsLast(ConvolutionDesc desc, const Attributes& attributes,
                               const Primitive& primitive, OperationContext& context) {
  const MemoryDesc& src = primitive.Desc(kArgSrc);
  if (!src.IsPlain()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(desc.src,
                        runtime::PlainDesc(src.dims(), src.data_type(), /*channels_last=*/true));
  if (runtime::SameMemory(desc.src, src)) return absl::OkStatus();
  auto variant = context.plan().Create(desc, attributes, context.row());
  if (absl::IsUnimplemented(variant.status())) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(variant.status());
  if ((*variant)->name() == primitive.name() &&
      (*variant)->Desc(kArgWeights) == primitive.Desc(kArgWeights)) {
    return context.plan().AddInputVariant(context.src(), primitive, *std::move(variant));
  }
  return absl::OkStatus();
}

absl::StatusOr<Place> EmitPooling(const network::FusedPooling& pooling, const Place& src,
                                  OperationContext& context) {
  PoolingDesc desc{.src = src.desc,
                   .kernel = {2, 2},
                   .strides = {2, 2},
                   .padding_left = {0, 0},
                   .padding_right = {0, 0}};
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  const Place dst = context.plan().NewPlace(primitive->Desc(kArgDst));
  context.plan().Emit(pooling.name, std::move(primitive),
                      {{kArgSrc, src.buffer}, {kArgDst, dst.buffer}});
  return dst;
}

}  // namespace

absl::Status LowerConvolution(const network::Convolution& convolution, OperationContext& context) {
  const WeightedOperation operation(convolution);
  ABSL_ASSIGN_OR_RETURN(Fusion fusion, PlanFusion(operation, context.settings()));
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc desc, DescOf(convolution, fusion, context));
  fusion.attributes.precision = PrecisionOf(convolution, desc, context.precision());
  ABSL_ASSIGN_OR_RETURN(PrimitivePtr primitive,
                        CreateWithPooling(convolution, desc, &fusion, context));
  ABSL_ASSIGN_OR_RETURN(primitive, ForSourceAsItIs(desc, fusion.attributes, primitive, context));
  const bool alone_reads_request =
      context.plan().IsUnplaced(context.src()) && context.plan().RemainingUses(context.src()) == 1;
  ABSL_ASSIGN_OR_RETURN(Place result, EmitWeighted(operation, fusion, primitive, context));
  if (convolution.pooling && !fusion.attributes.post_ops.HasMaxPooling()) {
    ABSL_ASSIGN_OR_RETURN(result, EmitPooling(*convolution.pooling, result, context));
  }
  ABSL_RETURN_IF_ERROR(context.BindResult(result));
  if (!alone_reads_request) return absl::OkStatus();
  return OfferChannelsLast(desc, fusion.attributes, *primitive, context);
}

}  // namespace tilewire::lowering
