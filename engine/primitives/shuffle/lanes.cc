// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/shuffle/implementations.h"

namespace tilewire::shuffle {
namespace {

// Immutable.
class Lanes final : public Primitive {
 public:
  Lanes(PrimitiveInfo primitive_info, ChannelGather gather)
      : Primitive(std::move(primitive_info)), gather_(std::move(gather)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const std::byte* src = args.Get<const std::byte>(info().args[0].arg);
    gather_.Run({&src, 1}, args.Get<std::byte>(info().args[1].arg), team);
  }

  const ChannelGather gather_;
};

}  // namespace

absl::StatusOr<ShuffleDesc> ResolveLanes(const Request<ShuffleDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ShuffleDesc resolved, ResolveReference(request));
  if (resolved.axis != 1) return Unimplemented("not along the channels");
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require({&resolved.src, 1}, resolved.dst, VectorUnit::Of(request.facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const Request<ShuffleDesc>& request) {
  const ShuffleDesc& desc = request.desc;
  std::vector<ChannelSource> channels;
  for (int64_t source : SourceIndices(desc)) channels.push_back({0, source});
  ABSL_ASSIGN_OR_RETURN(ChannelGather gather,
                        ChannelGather::Create(request.facts.name, VectorUnit::Of(request.facts.isa),
                                              {&desc.src, 1}, desc.dst, channels));
  return std::make_unique<Lanes>(WithCode(InfoOf(request), gather), std::move(gather));
}

}  // namespace tilewire::shuffle
