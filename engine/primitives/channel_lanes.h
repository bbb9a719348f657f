// SPDX-License-Identifier: Apache-2.0
//
// A primitive whose destination's channels are channels of its sources, in channel-blocked layouts,
// by generated code that puts each block together from lanes of others (channel_gather.h).
#ifndef ENGINE_PRIMITIVES_CHANNEL_LANES_H_
#define ENGINE_PRIMITIVES_CHANNEL_LANES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// The last of info.args is the destination, the others are the sources. `channels` has an entry per
// channel of the destination. ChannelGather::Require() must hold for the tensors. Errors are those
// of ChannelGather::Create().
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelLanes(
    PrimitiveInfo info, const std::vector<ChannelSource>& channels);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CHANNEL_LANES_H_
