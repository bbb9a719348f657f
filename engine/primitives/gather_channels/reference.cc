// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/implementations.h"
#include "engine/primitives/layout.h"

namespace tilewire::gather_channels {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const GatherChannelsDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team&) const override {
    const MemoryDesc& dst = desc_.dst;
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      const ChannelSource& channel = desc_.channels[index[1]];
      Dims from = index;
      from[1] = channel.channel;
      CopyElement(dst.data_type(), args.Find(kArgMultipleSrc + channel.tensor),
                  desc_.srcs[channel.tensor].Offset(from), args.Find(kArgDst), dst.Offset(index));
    });
    ZeroPadding(dst, args.Find(kArgDst));
  }

  const GatherChannelsDesc desc_;
};

}  // namespace

absl::StatusOr<GatherChannelsDesc> ResolveReference(const GatherChannelsDesc& desc,
                                                    const Attributes& attributes,
                                                    const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  GatherChannelsDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.srcs[0]));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const GatherChannelsDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kGatherChannels, ArgsOf(desc.srcs, desc.dst), attributes),
      desc);
}

}  // namespace tilewire::gather_channels
