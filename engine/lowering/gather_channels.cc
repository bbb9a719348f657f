// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/source_layouts.h"
#include "engine/runtime/channel_step.h"

namespace tilewire::lowering {

absl::Status LowerGatherChannels(const graph::GatherChannels& gather, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(context));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(layout, context));
  context.ConsumeSources();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(layout));
  ABSL_ASSIGN_OR_RETURN(auto step, runtime::CreateChannelStep(gather, DescsOf(sources), dst,
                                                              context.settings().options.max_isa));
  return context.EmitMultiple(std::move(step), sources);
}

}  // namespace tilewire::lowering
