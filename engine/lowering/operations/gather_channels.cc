// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/source_layouts.h"

namespace tilewire::lowering {

absl::Status LowerGatherChannels(const network::GatherChannels& gather, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, LayoutOfSources(context));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Place> sources, SourcesInLayout(layout, context));
  context.ConsumeSources();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(layout));
  GatherChannelsDesc desc{.srcs = DescsOf(sources), .dst = dst};
  for (const network::GatherChannels::From& from : gather.from)
    desc.channels.push_back({from.src, from.channel});
  return context.EmitMultiple(context.Create(desc), sources);
}

}  // namespace tilewire::lowering
