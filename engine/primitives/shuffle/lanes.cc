// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/primitives/channel_lanes.h"
#include "engine/primitives/shuffle/implementations.h"

namespace tilewire::shuffle {

absl::StatusOr<ShuffleDesc> ResolveLanes(const Request<ShuffleDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ShuffleDesc resolved, ResolveReference(request));
  if (resolved.axis != 1) return Unimplemented("not along the channels");
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require({&resolved.src, 1}, resolved.dst, VectorUnit::Of(request.facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const Request<ShuffleDesc>& request) {
  std::vector<ChannelSource> channels;
  for (int64_t source : SourceIndices(request.desc)) channels.push_back({0, source});
  return CreateChannelLanes(InfoOf(request), channels);
}

}  // namespace tilewire::shuffle
