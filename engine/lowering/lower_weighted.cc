// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/lowering/integer_fusion.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/group_merging.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/reference_reason.h"

namespace tilewire::runtime {
namespace {

using graph::FusedStep;
using graph::Operation;
using graph::ValueId;
using Place = PlanBuilder::Place;

// A sum post-op reads the one destination, so that a second sum cannot be a post-op.
Fusion PlanFusion(const std::vector<FusedStep>& steps, const std::vector<float>& bias) {
  Fusion fusion;
  fusion.bias = bias;
  for (const FusedStep& step : steps) {
    const bool is_sum = step.kind == FusedStep::Kind::kSum;
    if (is_sum && fusion.addend != graph::kNoValue) break;
    const PostOp op = is_sum ? PostOp(SumPostOp{}) : PostOp(EltwisePostOp{step.activation});
    if (!fusion.attributes.post_ops.Append(op).ok()) break;
    if (is_sum) fusion.addend = step.addend;
    ++fusion.taken;
  }
  return fusion;
}

// Of a convolution or inner product.
template <typename Weighted>
absl::StatusOr<Fusion> PlanFusion(const Weighted& weighted, const LoweringContext& context) {
  if (!weighted.src_quantization) return PlanFusion(weighted.fused, weighted.bias);
  std::shared_ptr<const AlignedBuffer> sums;
  IntegerTerms terms{.src = *weighted.src_quantization,
                     .dst = weighted.dst_quantization,
                     .weight_scales = weighted.weights.scale,
                     .outputs = weighted.weights.dims[0],
                     .bias = weighted.bias,
                     .steps = weighted.fused};
  if (terms.src.zero_point != 0) {
    ABSL_ASSIGN_OR_RETURN(sums, context.weights->SumOutputs(weighted.weights));
    terms.weight_sums = {reinterpret_cast<const float*>(sums->data()),
                         static_cast<size_t>(terms.outputs)};
  }
  ABSL_ASSIGN_OR_RETURN(IntegerFusion integers, PlanIntegerFusion(terms));
  return Fusion{std::move(integers.attributes), integers.addend, weighted.fused.size(),
                std::move(integers.bias)};
}

// What the convolution itself computes, in any layout; `dst` is that, or what its pooling makes of
// it.
absl::StatusOr<MemoryDesc> ResultDesc(const graph::Convolution& convolution,
                                      const graph::Value& dst) {
  return MemoryDesc::CreateAny(convolution.pooling ? convolution.pooling->src : dst.dims, dst.type);
}

template <typename Weighted>
DataType WeightsType(const Weighted& weighted) {
  return weighted.src_quantization ? DataType::kS8 : DataType::kF32;
}

// Leaves the zero descriptor where there is no bias.
absl::Status SetBias(const std::vector<float>& bias, MemoryDesc* desc) {
  if (bias.empty()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(*desc, PlainDesc({static_cast<int64_t>(bias.size())}, DataType::kF32,
                                         /*channels_last=*/false));
  return absl::OkStatus();
}

}  // namespace

absl::Status Lowering::Lower(const Operation& op, const graph::Convolution& convolution) {
  ABSL_ASSIGN_OR_RETURN(Fusion fusion, PlanFusion(convolution, builder_.context()));
  ConvolutionDesc desc{.algorithm = builder_.context().convolution_algorithm,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.src, builder_.AnyDesc(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(desc.dst, ResultDesc(convolution, builder_.value(op.dst)));
  const Dims weights = GroupedWeightsDims(convolution, builder_.context().options.max_isa);
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, WeightsType(convolution)));
  ABSL_RETURN_IF_ERROR(SetBias(fusion.bias, &desc.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateConvolution(convolution, desc, &fusion));
  ABSL_ASSIGN_OR_RETURN(primitive, AsItLies(op.srcs[0], desc, fusion.attributes, primitive));
  const bool alone_reads_request =
      builder_.IsUnplaced(op.srcs[0]) && builder_.RemainingUses(op.srcs[0]) == 1;
  ABSL_ASSIGN_OR_RETURN(
      Place result, LowerWeighted(op, primitive, convolution.weights, convolution.fused, fusion));
  if (convolution.pooling && !fusion.attributes.post_ops.HasMaxPooling()) {
    ABSL_ASSIGN_OR_RETURN(result, LowerFusedPooling(op, *convolution.pooling, result));
  }
  builder_.Bind(op.dst, result);
  if (!alone_reads_request) return absl::OkStatus();
  return OfferChannelsLast(op.srcs[0], desc, fusion.attributes, *primitive);
}

// A Winograd convolution does a pooling behind it in passing: it does both where it is chosen for
// the convolution alone, and then the chain of post-ops has the pooling.
absl::StatusOr<std::shared_ptr<const Primitive>> Lowering::CreateConvolution(
    const graph::Convolution& convolution, const ConvolutionDesc& desc, Fusion* fusion) {
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc, fusion->attributes));
  const bool may_pool = primitive->Desc(kArgWeights).format_kind() == FormatKind::kWinograd &&
                        fusion->taken == convolution.fused.size();
  Attributes pooled = fusion->attributes;
  if (!convolution.pooling || !may_pool || !pooled.post_ops.Append(MaxPoolingPostOp{}).ok()) {
    return primitive;
  }
  auto pooling = builder_.Create(desc, pooled);
  if (!pooling.ok() || (*pooling)->name() != primitive->name()) return primitive;
  fusion->attributes = std::move(pooled);
  return *std::move(pooling);
}

absl::StatusOr<Place> Lowering::LowerFusedPooling(const Operation& op,
                                                  const graph::FusedPooling& pooling,
                                                  const Place& src) {
  PoolingDesc desc{.src = src.desc,
                   .kernel = {2, 2},
                   .strides = {2, 2},
                   .padding_left = {0, 0},
                   .padding_right = {0, 0}};
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  const Place dst = builder_.NewPlace(primitive->Desc(kArgDst));
  builder_.Emit(pooling.name, std::move(primitive), {{kArgSrc, src.buffer}, {kArgDst, dst.buffer}});
  return dst;
}

// Where the source is a part of a larger blocked tensor, the same implementation reading it where
// it lies, if it can; where the primitive would read a blocked source of few channels as a plain
// one, any that takes the blocks; else the primitive as it is.
absl::StatusOr<std::shared_ptr<const Primitive>> Lowering::AsItLies(
    ValueId src, ConvolutionDesc desc, const Attributes& attributes,
    std::shared_ptr<const Primitive> primitive) {
  if (builder_.IsUnplaced(src)) return primitive;
  ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(src));
  if (home.desc.IsPlain() || SameMemory(home.desc, primitive->Desc(kArgSrc))) return primitive;
  const bool wants_plain = primitive->Desc(kArgSrc).IsPlain();
  if (home.desc.IsDense() && home.desc.offset0() == 0 && !wants_plain) return primitive;
  desc.src = home.desc;
  auto as_it_lies = builder_.Create(desc, attributes);
  if (!as_it_lies.ok()) return primitive;
  const bool takes =
      wants_plain ? !IsReference(**as_it_lies) : (*as_it_lies)->name() == primitive->name();
  return takes ? *std::move(as_it_lies) : primitive;
}

// A convolution that reads a request's plain bytes reads either order of them, if there is an
// implementation that takes the same packed weights.
absl::Status Lowering::OfferChannelsLast(ValueId input, ConvolutionDesc desc,
                                         const Attributes& attributes, const Primitive& primitive) {
  const MemoryDesc& src = primitive.Desc(kArgSrc);
  if (!src.IsPlain()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(desc.src, PlainDesc(src.dims(), src.data_type(), /*channels_last=*/true));
  if (SameMemory(desc.src, src)) return absl::OkStatus();
  auto variant = builder_.Create(desc, attributes);
  if (absl::IsUnimplemented(variant.status())) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(variant.status());
  if ((*variant)->name() == primitive.name() &&
      (*variant)->Desc(kArgWeights) == primitive.Desc(kArgWeights)) {
    builder_.AddInputVariant(input, primitive, *std::move(variant));
  }
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::InnerProduct& product) {
  ABSL_ASSIGN_OR_RETURN(const Fusion fusion, PlanFusion(product, builder_.context()));
  Dims weights_dims = builder_.value(op.srcs[0]).dims;
  weights_dims[0] = builder_.value(op.dst).dims[1];
  InnerProductDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights_dims, WeightsType(product)));
  ABSL_RETURN_IF_ERROR(SetBias(fusion.bias, &desc.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateInnerProduct(op, std::move(desc), fusion.attributes));
  ABSL_ASSIGN_OR_RETURN(const Place result, LowerWeighted(op, std::move(primitive), product.weights,
                                                          product.fused, fusion));
  builder_.Bind(op.dst, result);
  return absl::OkStatus();
}

// An inner product can take its source as it lies, because the weights can be packed to match; the
// layout that it would choose itself is asked for only where that would leave the reference.
absl::StatusOr<std::shared_ptr<const Primitive>> Lowering::CreateInnerProduct(
    const Operation& op, InnerProductDesc desc, const Attributes& attributes) {
  if (!builder_.IsUnplaced(op.srcs[0])) {
    ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(op.srcs[0]));
    desc.src = home.desc;
    absl::StatusOr<std::shared_ptr<const Primitive>> primitive = builder_.Create(desc, attributes);
    if (primitive.ok() && !IsReference(**primitive)) return primitive;
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, builder_.AnyDesc(op.srcs[0]));
  return builder_.Create(desc, attributes);
}

// The step, and where its result is; nobody knows it as op.dst yet.
absl::StatusOr<Place> Lowering::LowerWeighted(const Operation& op,
                                              std::shared_ptr<const Primitive> primitive,
                                              const graph::Weights& weights,
                                              const std::vector<FusedStep>& fused,
                                              const Fusion& fusion) {
  const LoweringContext& context = builder_.context();
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        builder_.InLayout(op.srcs[0], primitive->Desc(kArgSrc), op.name));
  builder_.Consume(op.srcs[0]);
  ABSL_ASSIGN_OR_RETURN(
      const Place dst, DestinationHolding(op, fusion.addend, primitive->Desc(kArgDst), src.buffer));
  ABSL_ASSIGN_OR_RETURN(auto packed,
                        context.weights->Pack(weights, primitive->Desc(kArgWeights), context.team));
  Bindings bindings = {{kArgSrc, src.buffer}, {kArgDst, dst.buffer}};
  bindings.push_back(builder_.Constant(kArgWeights, std::move(packed)));
  if (!fusion.bias.empty()) {
    ABSL_ASSIGN_OR_RETURN(auto packed_bias,
                          context.weights->PackBias(fusion.bias, primitive->Desc(kArgBias)));
    bindings.push_back(builder_.Constant(kArgBias, std::move(packed_bias)));
  }
  builder_.Emit(op.name, std::move(primitive), std::move(bindings), /*remark=*/"",
                fusion.attributes.post_ops);
  ABSL_RETURN_IF_ERROR(LowerFusedRest(op, fused, fusion.taken, dst));
  return dst;
}

// Where an operation writes. With an addend, a buffer that holds it and that may be overwritten:
// the addend's own if this is its last use (and the operation does not read it as its source at the
// same time), else a copy.
absl::StatusOr<Place> Lowering::DestinationHolding(const Operation& op, ValueId addend,
                                                   const MemoryDesc& desc, int src) {
  if (addend == graph::kNoValue) return builder_.NewPlace(desc);
  Place held;
  if (builder_.IsUnplaced(addend)) {
    ABSL_ASSIGN_OR_RETURN(held, builder_.InLayout(addend, desc, op.name));
  } else {
    ABSL_ASSIGN_OR_RETURN(held, builder_.Home(addend));
  }
  builder_.Consume(addend);
  if (SameMemory(held.desc, desc) && builder_.IsDead(held.buffer) &&
      !builder_.MayOverlap(held.buffer, src)) {
    return Place{held.buffer, desc};
  }
  ABSL_ASSIGN_OR_RETURN(auto copy, builder_.Create(ReorderDesc{held.desc, desc}));
  const Place place = builder_.NewPlace(desc);
  builder_.Emit(op.name, std::move(copy), {{kArgSrc, held.buffer}, {kArgDst, place.buffer}},
                "copies the addend of a fused sum");
  return place;
}

// What the primitive could not take as post-ops, in place over its result.
absl::Status Lowering::LowerFusedRest(const Operation& op, const std::vector<FusedStep>& fused,
                                      size_t from, const Place& place) {
  for (size_t i = from; i < fused.size(); ++i) {
    const FusedStep& step = fused[i];
    if (step.kind == FusedStep::Kind::kActivation) {
      ABSL_ASSIGN_OR_RETURN(auto eltwise,
                            builder_.Create(EltwiseDesc{
                                .op = step.activation, .src = place.desc, .dst = place.desc}));
      builder_.Emit(op.name, std::move(eltwise),
                    {{kArgSrc, place.buffer}, {kArgDst, place.buffer}});
      continue;
    }
    ABSL_ASSIGN_OR_RETURN(const Place addend, builder_.InLayout(step.addend, place.desc, op.name));
    builder_.Consume(step.addend);
    ABSL_ASSIGN_OR_RETURN(
        auto sum, builder_.Create(SumDesc{
                      .scales = {1, 1}, .srcs = {place.desc, place.desc}, .dst = place.desc}));
    builder_.Emit(op.name, std::move(sum),
                  {{kArgMultipleSrc, place.buffer},
                   {kArgMultipleSrc + 1, addend.buffer},
                   {kArgDst, place.buffer}});
  }
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
