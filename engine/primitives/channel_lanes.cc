// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/channel_lanes.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire {

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelLanes(
    PrimitiveInfo info, const std::vector<ChannelSource>& channels) {
  std::vector<MemoryDesc> tensors;
  for (const ArgDesc& arg : info.args) tensors.push_back(arg.desc);
  ABSL_ASSIGN_OR_RETURN(
      ChannelGather gather,
      ChannelGather::Create(info.name, jit::VectorUnit::Of(info.isa),
                            absl::MakeConstSpan(tensors).first(tensors.size() - 1), tensors.back(),
                            channels));
  return MakeDriven(std::move(info), std::move(gather),
                    [](const ChannelGather& lanes, const DrivenRun& run) {
                      const absl::Span<const ArgDesc> args = run.primitive.info().args;
                      absl::InlinedVector<const std::byte*, 8> sources;
                      for (const ArgDesc& source : args.first(args.size() - 1))
                        sources.push_back(run.args.Get<const std::byte>(source.arg));
                      lanes.Run(sources, run.args.Get<std::byte>(args.back().arg), run.team);
                    });
}

}  // namespace tilewire
