// SPDX-License-Identifier: Apache-2.0
//
// Any change of the order of dimensions as one between nchw and nhwc. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_REORDER_TRANSPOSITION_H_
#define ENGINE_PRIMITIVES_REORDER_TRANSPOSITION_H_

#include <optional>

#include "engine/primitives/reorder/reorder.h"

namespace tilewire::reorder {

// The same copy between plain tensors of rank 3 to 5, without offset0: dimensions that continue
// each other on both sides are one, one side's neighbours lie along dimension 1 and the other
// side's along the last dimension, which is the longer of the two. nullopt where neighbours of both
// sides lie along one dimension, or where more than three dimensions remain beside these two.
std::optional<ReorderDesc> AsChannelsAndPixels(const ReorderDesc& desc);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_TRANSPOSITION_H_
