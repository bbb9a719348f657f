// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/channel_step.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/channel_gather.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/memory/zero_padding.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using From = graph::GatherChannels::From;

// Immutable.
class GatherStep final : public Primitive {
 public:
  GatherStep(PrimitiveInfo info, size_t sources, ChannelGather gather)
      : Primitive(std::move(info)), sources_(sources), gather_(std::move(gather)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    std::vector<const std::byte*> srcs;
    for (size_t s = 0; s < sources_; ++s)
      srcs.push_back(args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(s)));
    gather_.Run(srcs, args.Get<std::byte>(kArgDst), team);
  }

  const size_t sources_;
  const ChannelGather gather_;
};

// Channel by channel, any layout. Immutable.
class LoopStep final : public Primitive {
 public:
  LoopStep(PrimitiveInfo info, std::vector<From> from, const std::vector<MemoryDesc>& srcs,
           const MemoryDesc& dst)
      : Primitive(std::move(info)), from_(std::move(from)), dst_(dst), to_(dst), area_(dst.dims()) {
    for (const MemoryDesc& src : srcs) sources_.emplace_back(src);
    area_[0] = area_[1] = 1;
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const int64_t channels = static_cast<int64_t>(from_.size());
    float* const dst = args.Get<float>(kArgDst);
    team.ParallelFor(dst_.dim(0) * channels, [&](int64_t task) {
      const int64_t image = task / channels, channel = task % channels;
      const From& from = from_[channel];
      const SeparableOffsets& source = sources_[from.src];
      const float* src = args.Get<const float>(kArgMultipleSrc + from.src);
      ForEachIndex(area_, [&](const Dims& pixel) {
        Dims index = pixel;
        index[0] = image;
        index[1] = from.channel;
        const float value = src[source.Offset(index)];
        index[1] = channel;
        dst[to_.Offset(index)] = value;
      });
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, dst);
  }

  const std::vector<From> from_;
  const MemoryDesc dst_;
  const SeparableOffsets to_;
  std::vector<SeparableOffsets> sources_;
  Dims area_;  // with 1 image and 1 channel
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateChannelStep(
    const graph::GatherChannels& gather, const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst,
    cpu::Isa max_isa) {
  ABSL_RETURN_IF_ERROR(CheckStep(dst));
  std::vector<ArgDesc> args;
  for (const MemoryDesc& src : srcs) {
    ABSL_RETURN_IF_ERROR(CheckStep(src));
    args.push_back({kArgMultipleSrc + static_cast<int>(args.size()), src});
  }
  args.push_back({kArgDst, dst});
  PrimitiveInfo info = StepInfo("runtime/gather_channels", std::move(args));
  for (cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2}) {
    if (!max_isa.Includes(isa) || !cpu::Supports(isa) ||
        !ChannelGather::Require(srcs, dst, isa).ok())
      continue;
    std::vector<ChannelSource> channels;
    for (const From& from : gather.from) channels.push_back({from.src, from.channel});
    ABSL_ASSIGN_OR_RETURN(ChannelGather generated,
                          ChannelGather::Create(info.name, isa, srcs, dst, channels));
    info.code_bytes = generated.code_bytes();
    return std::make_shared<GatherStep>(std::move(info), srcs.size(), std::move(generated));
  }
  return std::make_shared<LoopStep>(std::move(info), gather.from, srcs, dst);
}

}  // namespace tilewire::runtime
