// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire::shuffle {

// Axis 1 of channel-blocked layouts (nChw16c, nChw8c and their 1D and 3D kin) by generated code
// that puts each block of channels together from lanes of others (channel_gather.h).
TILEWIRE_ROW(ShuffleDesc, Lanes);

TILEWIRE_ROW(ShuffleDesc, Blocked);

TILEWIRE_ROW(ShuffleDesc, Reference);

// The primitive's description of itself, whatever the implementation.
PrimitiveInfo InfoOf(const Request<ShuffleDesc>& request);

// Element i of the destination's axis is element SourceIndices()[i] of the source's.
std::vector<int64_t> SourceIndices(const ShuffleDesc& desc);

}  // namespace tilewire::shuffle

#endif  // ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
