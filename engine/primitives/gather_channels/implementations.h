// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_

#include "engine/primitives/gather_channels/gather_channels.h"

namespace tilewire::gather_channels {

TILEWIRE_ROW(GatherChannelsDesc, Lanes);

TILEWIRE_ROW(GatherChannelsDesc, ChannelCopy);

TILEWIRE_ROW(GatherChannelsDesc, Reference);

}  // namespace tilewire::gather_channels

#endif  // ENGINE_PRIMITIVES_GATHER_CHANNELS_IMPLEMENTATIONS_H_
