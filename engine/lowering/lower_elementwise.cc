// SPDX-License-Identifier: Apache-2.0
//
// Functions of elements, and reductions: by primitives where these have generated code for them,
// else by plain loops.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_lowering.h"
#include "engine/runtime/elementwise_step.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/max_window_step.h"
#include "engine/runtime/reference_reason.h"
#include "engine/runtime/top_k_step.h"

namespace tilewire::runtime {

using graph::Operation;
using graph::ValueId;
using Place = PlanBuilder::Place;
using Function = graph::Elementwise::Function;

namespace {

std::optional<EltwiseOp> EltwiseOf(Function function) {
  switch (function) {
    case Function::kLog:
      return EltwiseOp{EltwiseAlgorithm::kLog};
    case Function::kFloor:
      return EltwiseOp{EltwiseAlgorithm::kFloor};
    case Function::kCeil:
      return EltwiseOp{EltwiseAlgorithm::kCeil};
    case Function::kRound:
      return EltwiseOp{EltwiseAlgorithm::kRound};
    case Function::kReciprocal:
      return EltwiseOp{EltwiseAlgorithm::kPow, 1, -1};
    default:
      return std::nullopt;
  }
}

std::optional<BinaryAlgorithm> BinaryOf(Function function) {
  switch (function) {
    case Function::kAdd:
      return BinaryAlgorithm::kAdd;
    case Function::kSub:
      return BinaryAlgorithm::kSub;
    case Function::kMul:
      return BinaryAlgorithm::kMul;
    case Function::kDiv:
      return BinaryAlgorithm::kDiv;
    case Function::kMax:
      return BinaryAlgorithm::kMax;
    case Function::kMin:
      return BinaryAlgorithm::kMin;
    default:
      return std::nullopt;
  }
}

// A dimension that both have lies in blocks in one of them.
bool BlockedApart(const MemoryDesc& a, const MemoryDesc& b) {
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) > 1 && b.dim(d) > 1 && a.BlockSize(d) != b.BlockSize(d)) return true;
  }
  return false;
}

bool Commutes(BinaryAlgorithm algorithm) {
  return algorithm != BinaryAlgorithm::kSub && algorithm != BinaryAlgorithm::kDiv;
}

// The reduction that the function is; a sum of |x|^p is a norm.
ReductionDesc ReductionOf(graph::Reduce::Function function) {
  using Reduced = graph::Reduce::Function;
  switch (function) {
    case Reduced::kSum:
      return {.algorithm = ReductionAlgorithm::kSum};
    case Reduced::kMean:
      return {.algorithm = ReductionAlgorithm::kMean};
    case Reduced::kMax:
      return {.algorithm = ReductionAlgorithm::kMax};
    case Reduced::kMin:
      return {.algorithm = ReductionAlgorithm::kMin};
    case Reduced::kProduct:
      return {.algorithm = ReductionAlgorithm::kMul};
    case Reduced::kSumOfAbs:
      return {.algorithm = ReductionAlgorithm::kNormLpPowerPSum, .p = 1};
    case Reduced::kSumOfSquares:
      return {.algorithm = ReductionAlgorithm::kNormLpPowerPSum, .p = 2};
  }
  return {};
}

}  // namespace

// The value as it lies, or, where its rank is lower, row-major with leading dimensions of 1.
absl::StatusOr<Place> Lowering::PlaceOfRank(ValueId id, size_t rank, const Operation& op) {
  if (builder_.value(id).dims.size() == rank) return builder_.Home(id);
  return RowMajorOfRank(id, rank, op);
}

absl::StatusOr<Place> Lowering::RowMajorOfRank(ValueId id, size_t rank, const Operation& op) {
  const graph::Value& value = builder_.value(id);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(const Place place, builder_.InLayout(id, plain, op.name));
  Dims dims(rank - value.dims.size(), 1);
  dims.insert(dims.end(), value.dims.begin(), value.dims.end());
  ABSL_ASSIGN_OR_RETURN(MemoryDesc raised, PlainDesc(dims, value.type, /*channels_last=*/false));
  return Place{place.buffer, std::move(raised)};
}

// The value, with leading dimensions of 1 up to the rank of `layout`, in a layout like that one.
absl::StatusOr<Place> Lowering::PlaceLike(ValueId id, const MemoryDesc& layout,
                                          const Operation& op) {
  ABSL_ASSIGN_OR_RETURN(const Place place, PlaceOfRank(id, layout.rank(), op));
  ABSL_ASSIGN_OR_RETURN(MemoryDesc wanted, LayoutLike(layout, place.desc.dims()));
  if (SameMemory(place.desc, wanted)) return Place{place.buffer, std::move(wanted)};
  if (static_cast<int>(builder_.value(id).dims.size()) == layout.rank())
    return builder_.InLayout(id, wanted, op.name);
  ABSL_ASSIGN_OR_RETURN(auto reorder, builder_.Create(ReorderDesc{place.desc, wanted}));
  const Place copy = builder_.NewPlace(wanted);
  builder_.Emit(op.name, std::move(reorder), {{kArgSrc, place.buffer}, {kArgDst, copy.buffer}},
                "another layout is wanted");
  return copy;
}

absl::StatusOr<bool> Lowering::TryEltwise(const Operation& op,
                                          const graph::Elementwise& elementwise) {
  const std::optional<EltwiseOp> function = EltwiseOf(elementwise.function);
  if (!function) return false;
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.DenseHome(op.srcs[0], op.name));
  auto primitive = builder_.Create(EltwiseDesc{.op = *function, .src = src.desc, .dst = src.desc});
  if (!primitive.ok() || IsReference(**primitive)) return false;
  ABSL_RETURN_IF_ERROR(EmitUnary(op, *std::move(primitive), src, /*may_run_in_place=*/true));
  return true;
}

// In the layout of the source that is not broadcast, of a blocked one if both are not; over it
// where nobody else reads it.
absl::StatusOr<bool> Lowering::TryBinary(const Operation& op,
                                         const graph::Elementwise& elementwise) {
  const std::optional<BinaryAlgorithm> algorithm = BinaryOf(elementwise.function);
  if (!algorithm) return false;
  const Dims& dims = builder_.value(op.dst).dims;
  std::vector<ValueId> srcs = op.srcs;
  const auto is_whole = [&](ValueId id) { return builder_.value(id).dims == dims; };
  if (!is_whole(srcs[0]) && Commutes(*algorithm)) std::swap(srcs[0], srcs[1]);
  if (!is_whole(srcs[0])) return false;
  ABSL_ASSIGN_OR_RETURN(Place layout, builder_.Home(srcs[0]));
  ABSL_ASSIGN_OR_RETURN(Place b, PlaceOfRank(srcs[1], dims.size(), op));
  if (is_whole(srcs[1]) && layout.desc.IsPlain()) layout = b;
  BinaryDesc desc{.algorithm = *algorithm, .src1 = b.desc};
  ABSL_ASSIGN_OR_RETURN(desc.dst, LayoutLike(layout.desc, dims));
  desc.src0 = desc.dst;
  if (is_whole(srcs[1]) || BlockedApart(desc.dst, b.desc)) {
    ABSL_ASSIGN_OR_RETURN(desc.src1, LayoutLike(desc.dst, b.desc.dims()));
  }
  auto primitive = builder_.Create(desc);
  if (!primitive.ok() || IsReference(**primitive)) return false;
  ABSL_ASSIGN_OR_RETURN(const Place a, PlaceLike(srcs[0], desc.dst, op));
  if (!SameMemory(b.desc, desc.src1)) {
    ABSL_ASSIGN_OR_RETURN(b, PlaceLike(srcs[1], desc.dst, op));
  }
  for (ValueId src : op.srcs) builder_.Consume(src);
  const bool in_place = !builder_.MayOverlap(a.buffer, b.buffer) && builder_.IsDead(a.buffer);
  const Place dst = in_place ? Place{a.buffer, desc.dst} : builder_.NewPlace(desc.dst);
  builder_.Emit(op.name, *std::move(primitive),
                {{kArgSrc, a.buffer}, {kArgSrc1, b.buffer}, {kArgDst, dst.buffer}});
  builder_.Bind(op.dst, dst);
  return true;
}

// By a loop: in the layout of the first source that is not broadcast; one of another layout is read
// as it lies.
absl::Status Lowering::Lower(const Operation& op, const graph::Elementwise& elementwise) {
  ABSL_ASSIGN_OR_RETURN(bool done, TryEltwise(op, elementwise));
  if (!done) {
    ABSL_ASSIGN_OR_RETURN(done, TryBinary(op, elementwise));
  }
  if (done) return absl::OkStatus();
  const graph::Value& value = builder_.value(op.dst);
  ABSL_ASSIGN_OR_RETURN(MemoryDesc dst_desc,
                        PlainDesc(value.dims, value.type, /*channels_last=*/false));
  std::vector<MemoryDesc> descs;
  Bindings bindings;
  bool chosen = false;
  for (ValueId src : op.srcs) {
    ABSL_ASSIGN_OR_RETURN(const Place place, PlaceOfRank(src, value.dims.size(), op));
    if (!chosen && place.desc.dims() == value.dims) {
      ABSL_ASSIGN_OR_RETURN(dst_desc, LayoutLike(place.desc, value.dims));
      chosen = true;
    }
    bindings.push_back({kArgMultipleSrc + static_cast<int>(descs.size()), place.buffer});
    descs.push_back(place.desc);
  }
  for (ValueId src : op.srcs) builder_.Consume(src);
  ABSL_ASSIGN_OR_RETURN(auto step, CreateElementwiseStep(elementwise, descs, dst_desc));
  const Place dst = builder_.NewPlace(dst_desc);
  bindings.push_back({kArgDst, dst.buffer});
  builder_.Emit(op.name, std::move(step), std::move(bindings));
  builder_.Bind(op.dst, dst);
  return absl::OkStatus();
}

absl::Status Lowering::Lower(const Operation& op, const graph::Reduce& reduce) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ReductionDesc desc = ReductionOf(reduce.function);
  desc.src = src.desc;
  desc.dst = dst;
  auto primitive = builder_.Create(desc);
  if (primitive.ok() && !IsReference(**primitive))
    return EmitUnary(op, *std::move(primitive), src, /*may_run_in_place=*/false);
  ABSL_ASSIGN_OR_RETURN(auto step, CreateReduceStep(reduce, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::TopK& top) {
  ABSL_ASSIGN_OR_RETURN(const Place src, builder_.Home(op.srcs[0]));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateTopKStep(top, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::MaxWindow& window) {
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        RowMajorOfRank(op.srcs[0], builder_.value(op.srcs[0]).dims.size(), op));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateMaxWindowStep(window, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

absl::Status Lowering::Lower(const Operation& op, const graph::Interpolate& interpolate) {
  ABSL_ASSIGN_OR_RETURN(Place src, builder_.DenseHome(op.srcs[0], op.name));
  if (src.desc.BlockSize(interpolate.axis) != 1) {
    ABSL_ASSIGN_OR_RETURN(src, RowMajorOfRank(op.srcs[0], src.desc.dims().size(), op));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, LayoutLike(src.desc, builder_.value(op.dst).dims));
  ABSL_ASSIGN_OR_RETURN(auto step, CreateInterpolateStep(interpolate, src.desc, dst));
  return EmitUnary(op, std::move(step), src, /*may_run_in_place=*/false);
}

}  // namespace tilewire::runtime
