// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"

namespace tilewire::lowering {
namespace {

// The result of the operation that saved the places: they are laid out as it is.
absl::StatusOr<ValueId> ResultBeside(ValueId places, const OperationContext& context) {
  for (const network::Operation& op : context.network().operations) {
    if (absl::c_linear_search(op.more_dsts, places)) return op.dst;
  }
  return Internal("no operation saves the places '", context.value(places).name, "'");
}

// The layout of dy, and where it is in it.
absl::StatusOr<Place> PlaceOfGradient(const network::Pooling& forward, OperationContext& context) {
  if (!forward.saves_places) return context.DenseHome(context.src(0));
  ABSL_ASSIGN_OR_RETURN(const ValueId result, ResultBeside(context.src(1), context));
  ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(result));
  return context.InLayout(context.src(0), home.desc);
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
