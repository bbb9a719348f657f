// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/strided_view.h"

namespace tilewire::lowering {

// The same bytes under other dims: no step of its own, only a reorder where the source is not in
// row-major order and its readers do not follow strides.
absl::Status LowerReshape(const network::Reshape&, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc src, context.RowMajorDesc(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.RowMajorDesc(context.dst()));
  if (src.SizeBytes() != dst.SizeBytes()) {
    return InvalidArgument("cannot reshape ", DimsToString(src.dims()), " to ",
                           DimsToString(dst.dims()));
  }
  if (IsReadByStrides(context, context.dst())) {
    ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(context.src()));
    absl::StatusOr<MemoryDesc> view = StridedView(home.desc, dst.dims());
    if (view.ok()) {
      context.ConsumeSources();
      return context.BindResult(Place{home.buffer, *std::move(view)});
    }
  }
  ABSL_ASSIGN_OR_RETURN(const Place place, context.InLayout(context.src(), src));
  context.ConsumeSources();
  return context.BindResult(Place{place.buffer, dst});
}

}  // namespace tilewire::lowering
