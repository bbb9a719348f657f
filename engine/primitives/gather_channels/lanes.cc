// SPDX-License-Identifier: Apache-2.0
//
// Channel-blocked layouts (nChw16c, nChw8c and their 1D and 3D kin) by generated code that puts
// each block of channels together from lanes of others (channel_gather.h).

#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/implementations.h"

namespace tilewire::gather_channels {
namespace {

// Immutable.
class Lanes final : public Primitive {
 public:
  Lanes(PrimitiveInfo info, int sources, ChannelGather gather)
      : Primitive(std::move(info)), sources_(sources), gather_(std::move(gather)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    absl::InlinedVector<const std::byte*, 8> sources;
    for (int i = 0; i < sources_; ++i) {
      sources.push_back(args.Get<const std::byte>(kArgMultipleSrc + i));
    }
    gather_.Run(sources, args.Get<std::byte>(kArgDst), team);
  }

  const int sources_;
  const ChannelGather gather_;
};

}  // namespace

absl::StatusOr<GatherChannelsDesc> ResolveLanes(const GatherChannelsDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(GatherChannelsDesc resolved, ResolveReference(desc, attributes, facts));
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require(resolved.srcs, resolved.dst, VectorUnit::Of(facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const GatherChannelsDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ChannelGather gather,
                        ChannelGather::Create(facts.name, VectorUnit::Of(facts.isa), desc.srcs,
                                              desc.dst, desc.channels));
  PrimitiveInfo info =
      BasicInfo(facts, PrimitiveKind::kGatherChannels, ArgsOf(desc.srcs, desc.dst), attributes);
  info.code_bytes = gather.code_bytes();
  return std::make_unique<Lanes>(std::move(info), static_cast<int>(desc.srcs.size()),
                                 std::move(gather));
}

}  // namespace tilewire::gather_channels
