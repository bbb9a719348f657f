// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_

#include "engine/primitives/concat/concat.h"

namespace tilewire::concat {

// Axis 1 of channel-blocked layouts (nChw16c, nChw8c and their 1D and 3D kin) by generated code
// that puts each block of channels together from lanes of others (channel_gather.h).
TILEWIRE_ROW(ConcatDesc, Lanes);

TILEWIRE_ROW(ConcatDesc, BlockCopy);

TILEWIRE_ROW(ConcatDesc, Reference);

}  // namespace tilewire::concat

#endif  // ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
