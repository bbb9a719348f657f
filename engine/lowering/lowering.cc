// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/lowering.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {
namespace {

using graph::Operation;
using graph::ValueId;
using Place = PlanBuilder::Place;

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

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> Lowering::Build() {
  for (const Operation& operation : network_.operations) {
    const absl::Status status =
        std::visit([&](const auto& params) { return Lower(operation, params); }, operation.params);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("node '", operation.name, "': ", status.message()));
    }
  }
  return builder_.Finish();
}

absl::Status Lowering::EmitUnary(const Operation& op, std::shared_ptr<const Primitive> primitive,
                                 const Place& src, bool may_run_in_place, Bindings more) {
  builder_.Consume(op.srcs[0]);
  const MemoryDesc& dst_desc = primitive->Desc(kArgDst);
  const bool in_place =
      may_run_in_place && builder_.IsDead(src.buffer) && SameMemory(src.desc, dst_desc);
  const Place dst = in_place ? Place{src.buffer, dst_desc} : builder_.NewPlace(dst_desc);
  more.push_back({kArgSrc, src.buffer});
  more.push_back({kArgDst, dst.buffer});
  builder_.Emit(op.name, std::move(primitive), std::move(more));
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
  ABSL_ASSIGN_OR_RETURN(desc.dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto primitive, builder_.Create(desc));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Activation& activation) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.DenseHome(op.srcs[0], op.name));
  ABSL_ASSIGN_OR_RETURN(
      auto primitive,
      builder_.Create(EltwiseDesc{.op = activation.op, .src = src.desc, .dst = src.desc}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/true);
}

// As rows along the axis, which the generated code wants: what is exponentiated and added up
// follows each other in memory.
absl::Status Lowering::Lower(const Operation& op, const graph::Softmax& softmax) {
  const graph::Value& value = builder_.value(op.dst);
  std::vector<int> order;  // of the dimensions, the axis last
  for (int d = 0; d < static_cast<int>(value.dims.size()); ++d) {
    if (d != softmax.axis) order.push_back(d);
  }
  order.push_back(softmax.axis);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, NestedDesc(value.dims, value.type, order));
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.InLayout(op.srcs[0], desc, op.name));
  ABSL_ASSIGN_OR_RETURN(
      auto primitive, builder_.Create(SoftmaxDesc{.src = desc, .dst = desc, .axis = softmax.axis}));
  return EmitUnary(op, std::move(primitive), src, /*may_run_in_place=*/true);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Shuffle& shuffle) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.DenseHome(op.srcs[0], op.name));
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
    if (!home.desc.IsPlain()) return LayoutLike(home.desc, home.desc.dims());
  }
  ABSL_ASSIGN_OR_RETURN(const Place home, builder_.Home(op.srcs[0]));
  return LayoutLike(home.desc, home.desc.dims());
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

absl::StatusOr<std::shared_ptr<const Plan>> Lower(const graph::Network& network,
                                                  const LoweringContext& context) {
  return Lowering(network, context).Build();
}

}  // namespace tilewire::runtime
