// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/lowering.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {
namespace {

using graph::FusedStep;
using graph::Operation;
using graph::ValueId;
using Place = PlanBuilder::Place;

// How a chain of fused steps is carried out: the first `taken` as post-ops, the others as steps of
// their own.
struct Fusion {
  Attributes attributes;
  ValueId addend = graph::kNoValue;  // of the sum among the post-ops
  size_t taken = 0;
};

// A sum post-op reads the one destination, so that a second sum cannot be a post-op.
Fusion PlanFusion(const std::vector<FusedStep>& steps) {
  Fusion fusion;
  for (const FusedStep& step : steps) {
    const bool is_sum = step.kind == FusedStep::Kind::kSum;
    if (is_sum && fusion.addend != graph::kNoValue) break;
    const PostOp op = is_sum ? PostOp(SumPostOp{}) : PostOp(EltwisePostOp{step.eltwise});
    if (!fusion.attributes.post_ops.Append(op).ok()) break;
    if (is_sum) fusion.addend = step.addend;
    ++fusion.taken;
  }
  return fusion;
}

// [O, I/g, k...] as the primitive counts it: [g, O/g, I/g, k...] where there are groups.
Dims WeightsDims(const graph::Convolution& convolution) {
  Dims dims = convolution.weights.dims;
  if (convolution.groups > 1 && !dims.empty()) {
    dims[0] /= convolution.groups;
    dims.insert(dims.begin(), convolution.groups);
  }
  return dims;
}

bool IsReference(const Primitive& primitive) {
  return absl::EndsWith(primitive.name(), "/reference");
}

// Leaves the zero descriptor where there is no bias.
absl::Status SetBias(const std::vector<float>& bias, MemoryDesc* desc) {
  if (bias.empty()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(*desc, PlainDesc({static_cast<int64_t>(bias.size())}, DataType::kF32,
                                         /*channels_last=*/false));
  return absl::OkStatus();
}

PoolingAlgorithm ToPrimitive(graph::Pooling::Algorithm algorithm) {
  switch (algorithm) {
    case graph::Pooling::Algorithm::kMax:
      return PoolingAlgorithm::kMax;
    case graph::Pooling::Algorithm::kAvgIncludePadding:
      return PoolingAlgorithm::kAvgIncludePadding;
    case graph::Pooling::Algorithm::kAvgExcludePadding:
      return PoolingAlgorithm::kAvgExcludePadding;
  }
  return PoolingAlgorithm::kMax;
}

class Lowering {
 public:
  Lowering(const graph::Network& network, const LoweringContext& context)
      : network_(network), builder_(network, context) {}

  absl::StatusOr<std::shared_ptr<const Plan>> Build() {
    for (const Operation& operation : network_.operations) {
      const absl::Status status = std::visit(
          [&](const auto& params) { return Lower(operation, params); }, operation.params);
      if (!status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat("node '", operation.name, "': ", status.message()));
      }
    }
    return builder_.Finish();
  }

 private:
  absl::Status Lower(const Operation& op, const graph::Convolution& convolution);
  absl::Status Lower(const Operation& op, const graph::InnerProduct& product);
  absl::Status Lower(const Operation& op, const graph::Pooling& pooling);
  absl::Status Lower(const Operation& op, const graph::Eltwise& eltwise);
  absl::Status Lower(const Operation& op, const graph::Softmax& softmax);
  absl::Status Lower(const Operation& op, const graph::Sum& sum);
  absl::Status Lower(const Operation& op, const graph::Concat& concat);
  absl::Status Lower(const Operation& op, const graph::Shuffle& shuffle);
  absl::Status Lower(const Operation& op, const graph::Reshape& reshape);
  absl::Status Lower(const Operation& op, const graph::Transpose& transpose);

  absl::Status LowerWeighted(const Operation& op, std::shared_ptr<const Primitive> primitive,
                             const graph::Weights& weights, const std::vector<float>& bias,
                             const std::vector<FusedStep>& fused, const Fusion& fusion);
  absl::StatusOr<std::shared_ptr<const Primitive>> CreateInnerProduct(const Operation& op,
                                                                      InnerProductDesc desc,
                                                                      const Attributes& attributes);
  absl::StatusOr<Place> DestinationHolding(const Operation& op, ValueId addend,
                                           const MemoryDesc& desc, int src);
  absl::Status LowerFusedRest(const Operation& op, const std::vector<FusedStep>& fused, size_t from,
                              Place place);
  absl::StatusOr<MemoryDesc> LayoutOfSources(const Operation& op);
  absl::StatusOr<std::vector<Place>> SourcesInLayout(const Operation& op, const MemoryDesc& layout);
  absl::Status EmitUnary(const Operation& op, std::shared_ptr<const Primitive> primitive,
                         const Place& src, bool may_run_in_place);

  const graph::Network& network_;
  PlanBuilder builder_;
};

absl::Status Lowering::Lower(const Operation& op, const graph::Convolution& convolution) {
  const Fusion fusion = PlanFusion(convolution.fused);
  ConvolutionDesc desc{.strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.src, builder_.AnyDesc(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(desc.weights,
                        MemoryDesc::CreateAny(WeightsDims(convolution), DataType::kF32));
  ABSL_RETURN_IF_ERROR(SetBias(convolution.bias, &desc.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc, fusion.attributes));
  return LowerWeighted(op, std::move(primitive), convolution.weights, convolution.bias,
                       convolution.fused, fusion);
}

absl::Status Lowering::Lower(const Operation& op, const graph::InnerProduct& product) {
  const Fusion fusion = PlanFusion(product.fused);
  Dims weights_dims = builder_.value(op.srcs[0]).dims;
  weights_dims[0] = builder_.value(op.dst).dims[1];
  InnerProductDesc desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights_dims, DataType::kF32));
  ABSL_RETURN_IF_ERROR(SetBias(product.bias, &desc.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateInnerProduct(op, std::move(desc), fusion.attributes));
  return LowerWeighted(op, std::move(primitive), product.weights, product.bias, product.fused,
                       fusion);
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

absl::Status Lowering::LowerWeighted(const Operation& op,
                                     std::shared_ptr<const Primitive> primitive,
                                     const graph::Weights& weights, const std::vector<float>& bias,
                                     const std::vector<FusedStep>& fused, const Fusion& fusion) {
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
  if (!bias.empty()) {
    ABSL_ASSIGN_OR_RETURN(auto packed_bias,
                          context.weights->PackBias(bias, primitive->Desc(kArgBias)));
    bindings.push_back(builder_.Constant(kArgBias, std::move(packed_bias)));
  }
  builder_.Emit(op.name, std::move(primitive), std::move(bindings),
                fusion.attributes.post_ops.ToString());
  return LowerFusedRest(op, fused, fusion.taken, dst);
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
  if (SameMemory(held.desc, desc) && builder_.IsDead(held.buffer) && held.buffer != src) {
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
                                      size_t from, Place place) {
  for (size_t i = from; i < fused.size(); ++i) {
    const FusedStep& step = fused[i];
    if (step.kind == FusedStep::Kind::kEltwise) {
      ABSL_ASSIGN_OR_RETURN(
          auto eltwise,
          builder_.Create(EltwiseDesc{.op = step.eltwise, .src = place.desc, .dst = place.desc}));
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
  builder_.Bind(op.dst, place);
  return absl::OkStatus();
}

absl::Status Lowering::EmitUnary(const Operation& op, std::shared_ptr<const Primitive> primitive,
                                 const Place& src, bool may_run_in_place) {
  builder_.Consume(op.srcs[0]);
  const MemoryDesc& dst_desc = primitive->Desc(kArgDst);
  const bool in_place =
      may_run_in_place && builder_.IsDead(src.buffer) && SameMemory(src.desc, dst_desc);
  const Place dst = in_place ? Place{src.buffer, dst_desc} : builder_.NewPlace(dst_desc);
  builder_.Emit(op.name, std::move(primitive), {{kArgSrc, src.buffer}, {kArgDst, dst.buffer}});
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::Pooling& pooling) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  PoolingDesc desc{.algorithm = ToPrimitive(pooling.algorithm),
                   .src = src.desc,
                   .kernel = pooling.kernel,
                   .strides = pooling.strides,
                   .padding_left = pooling.padding_left,
                   .padding_right = pooling.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.dst, builder_.AnyDesc(op.dst));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Eltwise& eltwise) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(EltwiseDesc{
                                            .op = eltwise.op, .src = src.desc, .dst = src.desc}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/true);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Softmax& softmax) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(
      auto primitive,
      builder_.Create(SoftmaxDesc{.src = src.desc, .dst = src.desc, .axis = softmax.axis}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/true);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Shuffle& shuffle) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(auto primitive,
                        builder_.Create(ShuffleDesc{.src = src.desc,
                                                    .dst = src.desc,
                                                    .axis = shuffle.axis,
                                                    .group_size = shuffle.group_size}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/false);
}

// The layout that most can keep: that of the first source in a blocked layout, else of the first.
absl::StatusOr<MemoryDesc> Lowering::LayoutOfSources(const Operation& op) {
  for (ValueId src : op.srcs) {
    if (builder_.IsUnplaced(src)) continue;
    ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(src));
    if (!home.desc.IsPlain()) return home.desc;
  }
  ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(op.srcs[0]));
  return home.desc;
}

absl::StatusOr<std::vector<Place>> Lowering::SourcesInLayout(const Operation& op,
                                                             const MemoryDesc& layout) {
  std::vector<Place> places;
  for (ValueId src : op.srcs) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(layout, builder_.value(src).dims));
    ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(src, desc, op.name));
    places.push_back(place);
  }
  for (ValueId src : op.srcs) builder_.Consume(src);
  return places;
}

Bindings ManySources(const std::vector<Place>& sources, int dst) {
  Bindings bindings;
  for (size_t i = 0; i < sources.size(); ++i) {
    bindings.push_back({kArgMultipleSrc + static_cast<int>(i), sources[i].buffer});
  }
  bindings.push_back({kArgDst, dst});
  return bindings;
}

absl::Status Lowering::Lower(const Operation& op, const graph::Sum&) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(op));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(op, layout));
  SumDesc desc{.scales = std::vector<float>(sources.size(), 1.0f), .srcs = {}, .dst = layout};
  for (const Place& source : sources) desc.srcs.push_back(source.desc);
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  const Place dst = builder_.NewPlace(primitive->Desc(kArgDst));
  builder_.Emit(op.name, std::move(primitive), ManySources(sources, dst.buffer));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::Concat& concat) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(op));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(op, layout));
  ConcatDesc desc{.axis = concat.axis};
  for (const Place& source : sources) desc.srcs.push_back(source.desc);
  ABSL_ASSIGN_OR_RETURN(desc.dst, LayoutLike(layout, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  const Place dst = builder_.NewPlace(primitive->Desc(kArgDst));
  builder_.Emit(op.name, std::move(primitive), ManySources(sources, dst.buffer));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

// The same bytes under other dims: no step, only a reorder where the source is not row-major.
absl::Status Lowering::Lower(const Operation& op, const graph::Reshape&) {
  const graph::Value& src = builder_.value(op.srcs[0]);
  const graph::Value& dst = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src_desc,
                        PlainDesc(src.dims, src.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst_desc,
                        PlainDesc(dst.dims, dst.type, /*channels_last=*/false));
  if (src_desc.SizeBytes() != dst_desc.SizeBytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", DimsToString(src.dims), " to ", DimsToString(dst.dims)));
  }
  ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(op.srcs[0], src_desc, op.name));
  builder_.Consume(op.srcs[0]);
  builder_.Bind(op.dst, {place.buffer, dst_desc});
  return absl::OkStatus();
}

// A reorder from the source with its dimensions renamed to row-major.
absl::Status Lowering::Lower(const Operation& op, const graph::Transpose& transpose) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc view, src.desc.Permuted(transpose.order));
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto reorder, builder_.Create(ReorderDesc{view, desc}));
  return EmitUnary(op, std::move(reorder), src, /*may_run_in_place=*/false);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> Lower(const graph::Network& network,
                                                  const LoweringContext& context) {
  return Lowering(network, context).Build();
}

}  // namespace tilewire::runtime
