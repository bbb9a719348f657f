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
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// `channels` has an entry per channel of `dst`. ChannelGather::Require() must hold for the tensors.
// Errors are those of ChannelGather::Create().
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelLanes(
    const ImplementationFacts& facts, PrimitiveKind kind, const std::vector<MemoryDesc>& srcs,
    const MemoryDesc& dst, const std::vector<ChannelSource>& channels,
    const Attributes& attributes);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CHANNEL_LANES_H_
