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

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/kernels/channel_gather.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct GatherChannelsDesc {
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
  std::vector<ChannelSource> channels;
};
TILEWIRE_FIELDS(ChannelSource, tensor, channel);
TILEWIRE_FIELDS(GatherChannelsDesc, srcs, dst, channels);

// Best first; tests and benchmarks run every row.
absl::Span<const Implementation<GatherChannelsDesc>> GatherChannelsImplementations();
// Typical descriptors that read `type`: see probes.h.
std::vector<GatherChannelsDesc> GatherChannelsProbes(DataType type);

//   kInvalidArgument    no source, dims or types that differ, another count of channels than dst
//                       has, a channel that no source has
//   kUnimplemented      no implementation takes it; the message lists why each refused
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateGatherChannels(
    const GatherChannelsDesc& desc, const Attributes& attributes, const CreateOptions& options);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_GATHER_CHANNELS_GATHER_CHANNELS_H_
