// SPDX-License-Identifier: Apache-2.0
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/strided_view.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// Whether all operations that read the result reorder it anyway.
bool IsReorderedAnyway(const OperationContext& context, int remaining_uses) {
  int64_t reorders = 0;
  for (const network::Operation& op : context.network().operations) {
    if (RowOf(op).absorbs_transpose) reorders += absl::c_count(op.srcs, context.dst());
  }
  return reorders == remaining_uses;
}

// Whether the result is a matrix that only products of matrices read, as their second side: they
// follow its strides.
bool IsSecondSide(const OperationContext& context) {
  const ValueId dst = context.dst();
  if (context.dst_value().dims.size() != 2) return false;
  int64_t reads = 0;
  for (const network::Operation& op : context.network().operations) {
    const auto* gradient = std::get_if<network::MatmulGradient>(&op.params);
    const bool is_product = std::holds_alternative<network::Matmul>(op.params) ||
                            (gradient != nullptr && !gradient->by_second);
    if (is_product && op.srcs[1] == dst && op.srcs[0] != dst) ++reads;
  }
  return reads > 0 && reads == context.remaining_uses(dst);
}

// A reorder in the order of the source's dimensions, in which generated code knows its blocks.
absl::Status ReorderBlocks(const network::Transpose& transpose, const Place& src,
                           const MemoryDesc& desc, OperationContext& context) {
  std::vector<int> back(transpose.order.size());
  for (size_t d = 0; d < back.size(); ++d) back[transpose.order[d]] = static_cast<int>(d);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc turned, desc.Permuted(back));
  return context.EmitTo(desc, context.Create(ReorderDesc{src.desc, turned}),
                        {{kArgSrc, src.buffer}});
}

}  // namespace

// A view of the source with its dimensions renamed. No step where every reader reorders the result
// anyway or follows its strides, nor where the view is in row-major order; otherwise one reorder to
// that order.
absl::Status LowerTranspose(const network::Transpose& transpose, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc view, src.desc.Permuted(transpose.order));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, context.RowMajorDesc(context.dst()));
  const bool in_order = view.IsPlain() && view.offset0() == 0 && runtime::SameMemory(view, desc);
  if (in_order || IsReorderedAnyway(context, context.remaining_uses(context.dst())) ||
      IsReadByStrides(context, context.dst()) || (view.IsPlain() && IsSecondSide(context))) {
    context.ConsumeSources();
    return context.BindResult(Place{src.buffer, in_order ? desc : view});
  }
  if (!src.desc.IsPlain()) return ReorderBlocks(transpose, src, desc, context);
  return context.EmitUnary(context.Create(ReorderDesc{view, desc}), src);
}

}  // namespace tilewire::lowering
