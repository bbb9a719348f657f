// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/concat/lanes.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/channel_gather.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"

namespace tilewire::concat {
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

absl::StatusOr<ConcatDesc> ResolveLanes(const ConcatDesc& desc, const Attributes& attributes,
                                        const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ConcatDesc resolved, ResolveReference(desc, attributes, facts));
  if (resolved.axis != 1) return absl::UnimplementedError("not along the channels");
  ABSL_RETURN_IF_ERROR(
      ChannelGather::Require(resolved.srcs, resolved.dst, VectorUnit::Of(facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const ConcatDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts) {
  std::vector<ChannelSource> channels;
  for (int i = 0; i < static_cast<int>(desc.srcs.size()); ++i) {
    for (int64_t c = 0; c < desc.srcs[i].dim(1); ++c) channels.push_back({i, c});
  }
  ABSL_ASSIGN_OR_RETURN(
      ChannelGather gather,
      ChannelGather::Create(facts.name, VectorUnit::Of(facts.isa), desc.srcs, desc.dst, channels));
  PrimitiveInfo info =
      BasicInfo(facts, PrimitiveKind::kConcat, ArgsOf(desc.srcs, desc.dst), attributes);
  info.code_bytes = gather.code_bytes();
  return std::make_unique<Lanes>(std::move(info), static_cast<int>(desc.srcs.size()),
                                 std::move(gather));
}

}  // namespace tilewire::concat
