// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/channel_lanes.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"

namespace tilewire {
namespace {

// Immutable.
class ChannelLanes final : public Primitive {
 public:
  ChannelLanes(PrimitiveInfo info, int sources, ChannelGather gather)
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

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelLanes(
    const ImplementationFacts& facts, PrimitiveKind kind, const std::vector<MemoryDesc>& srcs,
    const MemoryDesc& dst, const std::vector<ChannelSource>& channels,
    const Attributes& attributes) {
  ABSL_ASSIGN_OR_RETURN(
      ChannelGather gather,
      ChannelGather::Create(facts.name, jit::VectorUnit::Of(facts.isa), srcs, dst, channels));
  PrimitiveInfo info = WithCode(BasicInfo(facts, kind, ArgsOf(srcs, dst), attributes), gather);
  return std::make_unique<ChannelLanes>(std::move(info), static_cast<int>(srcs.size()),
                                        std::move(gather));
}

}  // namespace tilewire
