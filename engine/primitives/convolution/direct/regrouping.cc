// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/regrouping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

// Group after group, each in whole blocks.
absl::StatusOr<MemoryDesc> InWholeBlocks(const MemoryDesc& tensor, int64_t groups, int64_t lanes) {
  Dims dims = tensor.dims();
  dims[1] = groups * RoundUp(dims[1] / groups, lanes);
  return MemoryDesc::CreatePattern(dims, tensor.data_type(), LayoutPattern(tensor));
}

// Where the channels of groups in whole blocks come from. A group ends with copies of its last
// channel, which nothing reads.
std::vector<ChannelSource> ChannelsOfBlocks(int64_t groups, int64_t channels, int64_t lanes) {
  std::vector<ChannelSource> sources;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t c = 0; c < RoundUp(channels, lanes); ++c)
      sources.push_back({0, group * channels + std::min(c, channels - 1)});
  }
  return sources;
}

// The other way round.
std::vector<ChannelSource> ChannelsOfGroups(int64_t groups, int64_t channels, int64_t lanes) {
  std::vector<ChannelSource> sources;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t c = 0; c < channels; ++c)
      sources.push_back({0, group * RoundUp(channels, lanes) + c});
  }
  return sources;
}

}  // namespace

absl::Status RequireRegrouping(const ConvolutionDesc& desc, const VectorUnit& unit) {
  ABSL_RETURN_IF_ERROR(ChannelGather::Require({desc.src}, desc.src, unit));
  return ChannelGather::Require({desc.dst}, desc.dst, unit);
}

absl::StatusOr<Regrouping> Regrouping::Of(absl::string_view name, const MemoryDesc& tensor,
                                          int64_t groups, const VectorUnit& unit,
                                          const Copies& copies) {
  const int64_t lanes = unit.lanes(), channels = tensor.dim(1) / groups;
  Regrouping regrouping;
  regrouping.blocks = tensor;
  if (groups == 1 || channels % lanes == 0) return regrouping;
  absl::StatusOr<MemoryDesc> blocks = InWholeBlocks(tensor, groups, lanes);
  if (!blocks.ok()) return ResourceExhausted("the scratchpad for aligned groups is too large");
  regrouping.blocks = *std::move(blocks);
  regrouping.scratch_bytes = RoundUp(regrouping.blocks.SizeBytes(), AlignedBuffer::kAlignment);
  if (copies.in) {
    ABSL_ASSIGN_OR_RETURN(regrouping.in,
                          ChannelGather::Create(name, unit, {tensor}, regrouping.blocks,
                                                ChannelsOfBlocks(groups, channels, lanes)));
  }
  if (copies.out) {
    ABSL_ASSIGN_OR_RETURN(regrouping.out,
                          ChannelGather::Create(name, unit, {regrouping.blocks}, tensor,
                                                ChannelsOfGroups(groups, channels, lanes)));
  }
  return regrouping;
}

}  // namespace tilewire::convolution
