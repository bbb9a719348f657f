// SPDX-License-Identifier: Apache-2.0
//
// Channel by channel in plain loops, any layout; one channel of one image is a piece of work.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/implementations.h"

namespace tilewire::gather_channels {
namespace {

// Immutable. Element: an integer of the size of an element.
template <typename Element>
class ChannelCopy final : public Primitive {
 public:
  ChannelCopy(PrimitiveInfo info, const GatherChannelsDesc& desc)
      : Primitive(std::move(info)),
        channels_(desc.channels),
        dst_(desc.dst),
        to_(desc.dst),
        area_(desc.dst.dims()) {
    for (const MemoryDesc& src : desc.srcs) sources_.emplace_back(src);
    area_[0] = area_[1] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = static_cast<int64_t>(channels_.size());
    auto* const dst = args.Get<Element>(kArgDst);
    team.ParallelFor(dst_.dim(0) * channels, [&](int64_t task) {
      const int64_t image = task / channels, channel = task % channels;
      const ChannelSource& from = channels_[channel];
      const SeparableOffsets& source = sources_[from.tensor];
      const auto* src = args.Get<const Element>(kArgMultipleSrc + from.tensor);
      ForEachIndex(area_, [&](const Dims& pixel) {
        Dims index = pixel;
        index[0] = image;
        index[1] = from.channel;
        const Element value = src[source.Offset(index)];
        index[1] = channel;
        dst[to_.Offset(index)] = value;
      });
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  const std::vector<ChannelSource> channels_;
  const MemoryDesc dst_;
  const SeparableOffsets to_;
  std::vector<SeparableOffsets> sources_;
  Dims area_;  // with 1 image and 1 channel
};

}  // namespace

absl::StatusOr<GatherChannelsDesc> ResolveChannelCopy(const Request<GatherChannelsDesc>& request) {
  return ResolveReference(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelCopy(
    const Request<GatherChannelsDesc>& request) {
  return MakeCopying<ChannelCopy>(request.desc.dst.data_type(), InfoOf(request), request.desc);
}

}  // namespace tilewire::gather_channels
