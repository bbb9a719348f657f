// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/channel_lanes.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"

namespace tilewire {
namespace {

// Immutable.
class ChannelLanes final : public Primitive {
 public:
  ChannelLanes(PrimitiveInfo info, ChannelGather gather)
      : Primitive(std::move(info)), gather_(std::move(gather)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    absl::InlinedVector<const std::byte*, 8> sources;
    for (const ArgDesc& source : absl::MakeConstSpan(info().args).first(info().args.size() - 1)) {
      sources.push_back(args.Get<const std::byte>(source.arg));
    }
    gather_.Run(sources, args.Get<std::byte>(info().args.back().arg), team);
  }

  const ChannelGather gather_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelLanes(
    PrimitiveInfo info, const std::vector<ChannelSource>& channels) {
  std::vector<MemoryDesc> tensors;
  for (const ArgDesc& arg : info.args) tensors.push_back(arg.desc);
  ABSL_ASSIGN_OR_RETURN(
      ChannelGather gather,
      ChannelGather::Create(info.name, jit::VectorUnit::Of(info.isa),
                            absl::MakeConstSpan(tensors).first(tensors.size() - 1), tensors.back(),
                            channels));
  return std::make_unique<ChannelLanes>(WithCode(std::move(info), gather), std::move(gather));
}

}  // namespace tilewire
