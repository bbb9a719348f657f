// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using runtime::LayoutLike;
using runtime::SameMemory;
using Function = network::Elementwise::Function;

// Whether a dimension that neither tensor broadcasts is blocked differently in the two.
bool BlockedApart(const MemoryDesc& a, const MemoryDesc& b) {
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) > 1 && b.dim(d) > 1 && a.BlockSize(d) != b.BlockSize(d)) return true;
  }
  return false;
}

bool Commutes(BinaryAlgorithm algorithm) {
  return algorithm != BinaryAlgorithm::kSub && algorithm != BinaryAlgorithm::kDiv &&
         algorithm != BinaryAlgorithm::kPRelu;
}

// The value where it is, or, where its rank is lower, in row-major order with leading dimensions of
// 1.
absl::StatusOr<Place> PlaceOfRank(ValueId id, size_t rank, OperationContext& context) {
  if (context.value(id).dims.size() == rank) return context.Home(id);
  return context.RowMajorOfRank(id, rank);
}

// The value, with leading dimensions of 1 up to the rank of `layout`, nested and blocked as it.
absl::StatusOr<Place> PlaceLike(ValueId id, const MemoryDesc& layout, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place place, PlaceOfRank(id, layout.rank(), context));
  ABSL_ASSIGN_OR_RETURN(MemoryDesc wanted, LayoutLike(layout, place.desc.dims()));
  if (SameMemory(place.desc, wanted)) return Place{place.buffer, std::move(wanted)};
  if (static_cast<int>(context.value(id).dims.size()) == layout.rank())
    return context.InLayout(id, wanted);
  return context.Copy(place, wanted, "another layout is wanted");
}

absl::StatusOr<bool> TryEltwise(const network::Elementwise& elementwise,
                                OperationContext& context) {
  const Function function = elementwise.function;
  if (!functions::IsOfOneReal(function) || !functions::HasCode(function)) return false;
  if (functions::IsPredicate(function)) return false;  // its result may be of bytes
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  auto primitive = context.Create(EltwiseDesc{.op = elementwise, .src = src.desc, .dst = src.desc});
  if (!primitive.ok() || (*primitive)->info().traits.is_reference) return false;
  ABSL_RETURN_IF_ERROR(context.EmitUnaryInPlace(*std::move(primitive), src));
  return true;
}

// A binary primitive on two sources, the first of which has the dims of the result.
class BinaryOperation {
 public:
  BinaryOperation(BinaryAlgorithm algorithm, std::vector<ValueId> srcs, OperationContext& context)
      : desc_{.algorithm = algorithm}, srcs_(std::move(srcs)), context_(context) {}

  // False where no generated code takes the operation; nothing has been emitted then but reorders.
  absl::StatusOr<bool> Try() {
    if (!IsWhole(srcs_[0]) && Commutes(desc_.algorithm)) std::swap(srcs_[0], srcs_[1]);
    if (!IsWhole(srcs_[0])) return false;
    ABSL_RETURN_IF_ERROR(ChooseLayouts());
    auto primitive = context_.Create(desc_);
    if (!primitive.ok() || (*primitive)->info().traits.is_reference) return false;
    ABSL_RETURN_IF_ERROR(Emit(*std::move(primitive)));
    return true;
  }

 private:
  bool IsWhole(ValueId id) const { return context_.value(id).dims == context_.dst_value().dims; }

  // The layout of the source that is not broadcast; of a blocked one if neither is.
  absl::Status ChooseLayouts() {
    const Dims& dims = context_.dst_value().dims;
    ABSL_ASSIGN_OR_RETURN(Place layout, context_.Home(srcs_[0]));
    ABSL_ASSIGN_OR_RETURN(b_, PlaceOfRank(srcs_[1], dims.size(), context_));
    desc_.src1 = b_.desc;
    if (IsWhole(srcs_[1]) && layout.desc.IsPlain()) layout = b_;
    ABSL_ASSIGN_OR_RETURN(desc_.dst, context_.DstLike(layout.desc));
    desc_.src0 = desc_.dst;
    if (IsWhole(srcs_[1]) || BlockedApart(desc_.dst, b_.desc)) {
      ABSL_ASSIGN_OR_RETURN(desc_.src1, LayoutLike(desc_.dst, b_.desc.dims()));
    }
    return absl::OkStatus();
  }

  // Over the first source where that is dead.
  absl::Status Emit(std::shared_ptr<const Primitive> primitive) {
    ABSL_ASSIGN_OR_RETURN(const Place a, PlaceLike(srcs_[0], desc_.dst, context_));
    if (!SameMemory(b_.desc, desc_.src1)) {
      ABSL_ASSIGN_OR_RETURN(b_, PlaceLike(srcs_[1], desc_.dst, context_));
    }
    context_.ConsumeSources();
    PlanBuilder& plan = context_.plan();
    const bool in_place = !plan.MayOverlap(a.buffer, b_.buffer) && plan.MayOverwrite(a);
    const Place dst = in_place ? Place{a.buffer, desc_.dst} : plan.NewPlace(desc_.dst);
    context_.Emit(std::move(primitive),
                  {{kArgSrc, a.buffer}, {kArgSrc1, b_.buffer}, {kArgDst, dst.buffer}});
    return context_.BindResult(dst);
  }

  BinaryDesc desc_;
  std::vector<ValueId> srcs_;
  OperationContext& context_;
  Place b_;  // the second source
};

absl::StatusOr<bool> TryBinary(const network::Elementwise& elementwise, OperationContext& context) {
  if (!IsBinaryAlgorithm(elementwise.function)) return false;
  return BinaryOperation(elementwise.function, context.srcs(), context).Try();
}

// By the primitive for any function, which reads every source where it is, in the layout of the
// first source that is not broadcast.
absl::Status LowerGeneral(const network::Elementwise& elementwise, OperationContext& context) {
  const network::Value& value = context.dst_value();
  ABSL_ASSIGN_OR_RETURN(MemoryDesc dst, context.RowMajorDesc(context.dst()));
  std::vector<MemoryDesc> descs;
  std::vector<Place> places;
  bool chosen = false;
  for (ValueId src : context.srcs()) {
    ABSL_ASSIGN_OR_RETURN(const Place place, PlaceOfRank(src, value.dims.size(), context));
    if (!chosen && place.desc.dims() == value.dims) {
      ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, context.DstLike(place.desc));
      ABSL_ASSIGN_OR_RETURN(dst, layout.WithDataType(value.type));
      chosen = true;
    }
    places.push_back(place);
    descs.push_back(place.desc);
  }
  context.ConsumeSources();
  return context.EmitMultiple(context.Create(ElementwiseDesc{elementwise, std::move(descs), dst}),
                              places);
}

}  // namespace

// By the eltwise or binary primitive where that has generated code for f32, otherwise by the
// elementwise primitive, which computes any function of any type.
absl::Status LowerElementwise(const network::Elementwise& elementwise, OperationContext& context) {
  if (context.value(context.srcs().back()).type != DataType::kF32)
    return LowerGeneral(elementwise, context);
  ABSL_ASSIGN_OR_RETURN(bool done, TryEltwise(elementwise, context));
  if (!done) {
    ABSL_ASSIGN_OR_RETURN(done, TryBinary(elementwise, context));
  }
  return done ? absl::OkStatus() : LowerGeneral(elementwise, context);
}

}  // namespace tilewire::lowering
