// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of gather_channels.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_

#include "engine/primitives/gather_channels/gather_channels.h"

namespace tilewire::gather_channels {

absl::StatusOr<GatherChannelsDesc> ResolveLanes(const GatherChannelsDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const GatherChannelsDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

absl::StatusOr<GatherChannelsDesc> ResolveChannelCopy(const GatherChannelsDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelCopy(const GatherChannelsDesc& desc,
                                                             const Attributes& attributes,
                                                             const ImplementationFacts& facts);

absl::StatusOr<GatherChannelsDesc> ResolveReference(const GatherChannelsDesc& desc,
                                                    const Attributes& attributes,
                                                    const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const GatherChannelsDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::gather_channels

#endif  // ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_
