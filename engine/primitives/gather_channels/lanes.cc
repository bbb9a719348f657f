// SPDX-License-Identifier: Apache-2.0
//
// Channel-blocked layouts (nChw16c, nChw8c and their 1D and 3D kin) by generated code that puts
// each block of channels together from lanes of others (channel_gather.h).

#include "engine/base/status_macros.h"
#include "engine/primitives/channel_lanes.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/implementations.h"

namespace tilewire::gather_channels {

absl::StatusOr<GatherChannelsDesc> ResolveLanes(const Request<GatherChannelsDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(GatherChannelsDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require(resolved.srcs, resolved.dst, VectorUnit::Of(request.facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const Request<GatherChannelsDesc>& request) {
  return CreateChannelLanes(InfoOf(request), request.desc.channels);
}

}  // namespace tilewire::gather_channels
