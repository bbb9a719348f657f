// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/source_layouts.h"

#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

using runtime::LayoutLike;

absl::StatusOr<MemoryDesc> LayoutOfSources(OperationContext& context) {
  for (ValueId src : context.srcs()) {
    if (context.plan().IsUnplaced(src)) continue;
    ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(src));
    if (!home.desc.IsPlain()) return LayoutLike(home.desc, home.desc.dims());
  }
  ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(context.src()));
  return LayoutLike(home.desc, home.desc.dims());
}

absl::StatusOr<std::vector<Place>> SourcesInLayout(const MemoryDesc& layout,
                                                   OperationContext& context) {
  std::vector<Place> places;
  for (ValueId src : context.srcs()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(layout, context.value(src).dims));
    ABSL_ASSIGN_OR_RETURN(places.emplace_back(), context.InLayout(src, desc));
  }
  return places;
}

std::vector<MemoryDesc> DescsOf(const std::vector<Place>& places) {
  std::vector<MemoryDesc> descs;
  for (const Place& place : places) descs.push_back(place.desc);
  return descs;
}

}  // namespace tilewire::lowering
