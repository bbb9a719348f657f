// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/primitives/channel_lanes.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"

namespace tilewire::concat {

absl::StatusOr<ConcatDesc> ResolveLanes(const Request<ConcatDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ConcatDesc resolved, ResolveReference(request));
  if (resolved.axis != 1) return Unimplemented("not along the channels");
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require(resolved.srcs, resolved.dst, VectorUnit::Of(request.facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const Request<ConcatDesc>& request) {
  const ConcatDesc& desc = request.desc;
  std::vector<ChannelSource> channels;
  for (int i = 0; i < static_cast<int>(desc.srcs.size()); ++i) {
    for (int64_t c = 0; c < desc.srcs[i].dim(1); ++c) channels.push_back({i, c});
  }
  return CreateChannelLanes(InfoOf(request), channels);
}

}  // namespace tilewire::concat
