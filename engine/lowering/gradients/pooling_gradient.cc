// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// Whether `op` is the pooling of which this is the gradient, or, of averages, one of the same dims.
bool IsForwardOf(const network::Operation& op, bool saves_places, const OperationContext& context) {
  if (saves_places) return absl::c_linear_search(op.more_dsts, context.src(1));
  return std::holds_alternative<network::Pooling>(op.params) &&
         context.value(op.srcs[0]).dims == context.dst_value().dims &&
         context.value(op.dst).dims == context.src_value().dims;
}

// dy laid out as forward's result, as places are, so that the gradient of src lies as src does.
absl::StatusOr<Place> PlaceOfGradient(const network::Pooling& forward, OperationContext& context) {
  for (const network::Operation& op : context.network().operations) {
    if (!IsForwardOf(op, forward.saves_places, context) || context.plan().IsUnplaced(op.dst))
      continue;
    ABSL_ASSIGN_OR_RETURN(const Place result, context.Home(op.dst));
    if (forward.saves_places) return context.InLayout(context.src(0), result.desc);
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc dense,
                          runtime::LayoutLike(result.desc, result.desc.dims()));
    return context.InLayout(context.src(0), dense);
  }
  if (!forward.saves_places) return context.DenseHome(context.src(0));
  return Internal("no operation saves the places '", context.value(context.src(1)).name, "'");
}

}  // namespace

absl::Status LowerPoolingGradient(const network::PoolingGradient& gradient,
                                  OperationContext& context) {
  const network::Pooling& forward = gradient.forward;
  ABSL_ASSIGN_OR_RETURN(const Place dy, PlaceOfGradient(forward, context));
  PoolingDesc desc = RequestOf(forward);
  desc.prop_kind = PropKind::kBackwardData;
  desc.dst = dy.desc;
  ABSL_ASSIGN_OR_RETURN(desc.src, context.DstLike(dy.desc));
  Bindings bindings = {{kArgDiffDst, dy.buffer}};
  if (forward.saves_places) {
    ABSL_ASSIGN_OR_RETURN(const Place places, context.Home(context.src(1)));
    desc.workspace = places.desc;
    bindings.push_back({kArgWorkspace, places.buffer});
  }
  return context.EmitGradient(context.Create(desc), std::move(bindings));
}

}  // namespace tilewire::lowering
