// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/normalized_sum.h"
#include "engine/lowering/plan/source_layouts.h"

namespace tilewire::lowering {

absl::Status LowerSum(const network::Sum&, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(context));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(layout, context));
  ABSL_ASSIGN_OR_RETURN(const bool normalized, LowerNormalizedSum(sources, context));
  if (normalized) return absl::OkStatus();
  context.ConsumeSources();
  return context.EmitMultiple(
      context.Create(SumDesc{.scales = std::vector<float>(sources.size(), 1.0f),
                             .srcs = DescsOf(sources),
                             .dst = layout}),
      sources);
}

}  // namespace tilewire::lowering
