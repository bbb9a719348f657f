// SPDX-License-Identifier: Apache-2.0
//
// Axis 1 of channel-blocked layouts (nChw16c, nChw8c and their 1D and 3D kin) by generated code
// that puts each block of channels together from lanes of others (channel_gather.h), as rows of the
// table: `isa` is the row's.
#ifndef ENGINE_PRIMITIVES_SHUFFLE_LANES_H_
#define ENGINE_PRIMITIVES_SHUFFLE_LANES_H_

#include <memory>

#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire::shuffle {

// See implementation.h.
absl::StatusOr<ShuffleDesc> ResolveLanes(const ShuffleDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateLanes(const ShuffleDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

}  // namespace tilewire::shuffle

#endif  // ENGINE_PRIMITIVES_SHUFFLE_LANES_H_
