// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {
namespace {

// Whether all operations that read the result reorder it anyway.
bool IsReorderedAnyway(const OperationContext& context, int remaining_uses) {
  int64_t reorders = 0;
  for (const graph::Operation& op : context.network().operations) {
    const bool absorbs =
        std::visit([](const auto& params) { return RowOf(params).absorbs_transpose; }, op.params);
    if (absorbs) reorders += absl::c_count(op.srcs, context.dst());
  }
  return reorders == remaining_uses;
}

}  // namespace

// A view of the source with its dimensions renamed. No step where every reader reorders the result
// anyway; otherwise one reorder to row-major order.
absl::Status LowerTranspose(const graph::Transpose& transpose, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc view, src.desc.Permuted(transpose.order));
  if (IsReorderedAnyway(context, context.plan().RemainingUses(context.dst()))) {
    context.ConsumeSources();
    context.BindResult({src.buffer, view});
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, context.RowMajorDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(auto reorder, context.Create(ReorderDesc{view, desc}));
  return context.EmitUnary(std::move(reorder), src);
}

}  // namespace tilewire::lowering
