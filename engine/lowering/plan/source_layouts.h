// SPDX-License-Identifier: Apache-2.0
//
// One layout for all sources of an operation. Thread-compatible.
#ifndef ENGINE_LOWERING_PLAN_SOURCE_LAYOUTS_H_
#define ENGINE_LOWERING_PLAN_SOURCE_LAYOUTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"

namespace tilewire::lowering {

// The layout that most sources can keep: that of the first one in a blocked layout, otherwise that
// of the first one. Dense, with the dims of the source it was taken from.
absl::StatusOr<MemoryDesc> LayoutOfSources(OperationContext& context);

// Every source, nested and blocked as `layout`.
absl::StatusOr<std::vector<Place>> SourcesInLayout(const MemoryDesc& layout,
                                                   OperationContext& context);

std::vector<MemoryDesc> DescsOf(const std::vector<Place>& places);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_SOURCE_LAYOUTS_H_
