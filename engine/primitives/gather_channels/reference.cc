// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::gather_channels {

absl::StatusOr<GatherChannelsDesc> ResolveReference(const Request<GatherChannelsDesc>& request) {
  const GatherChannelsDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.srcs[0]));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<GatherChannelsDesc>& request) {
  const GatherChannelsDesc& desc = request.desc;
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const ChannelSource& channel = desc.channels[index[1]];
      Dims from = index;
      from[1] = channel.channel;
      CopyElement(desc.dst.data_type(), piece.Find(kArgMultipleSrc + channel.tensor),
                  desc.srcs[channel.tensor].Offset(from), piece.Find(kArgDst),
                  desc.dst.Offset(index));
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::gather_channels
