// SPDX-License-Identifier: Apache-2.0
//
// Channels gathered one by one from several tensors:
//
//   dst[n, c, pixel] = srcs[channels[c].tensor][n, channels[c].channel, pixel]
//
// A concatenation and a shuffle of channels in one pass.
//
// Shapes    rank 2 to 12; srcs have the dims of dst but along dimension 1. `channels` has one entry
//           per channel of dst; a channel may be taken more than once, or not at all.
// Types     all; the same on every side.
// Layouts   any; dst may be `any`: the layout of srcs[0]. Not in place.
// Arguments kArgMultipleSrc + i, kArgDst.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
#ifndef ENGINE_PRIMITIVES_GATHER_CHANNELS_GATHER_CHANNELS_H_
#define ENGINE_PRIMITIVES_GATHER_CHANNELS_GATHER_CHANNELS_H_

#include <vector>

#include "engine/kernels/moves/channel_gather.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct GatherChannelsDesc {
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
  std::vector<ChannelSource> channels;
};
TILEWIRE_FIELDS(ChannelSource, tensor, channel);
TILEWIRE_FIELDS(GatherChannelsDesc, srcs, dst, channels);

//   kInvalidArgument  no source, dims or types that differ, another count of channels than dst
//                     has, a channel that no source has
TILEWIRE_PRIMITIVE_FUNCTIONS(GatherChannels);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_GATHER_CHANNELS_GATHER_CHANNELS_H_
