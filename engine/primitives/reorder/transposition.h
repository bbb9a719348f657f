// SPDX-License-Identifier: Apache-2.0
//
// Copies as those between nchw, nhwc and channel blocks. Pure; thread-safe.
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

// The same copy from a plain tensor to blocks of one dimension, whose neighbours src has too, as
// one from nhwc to channel blocks, without offset0: weights [O, I] of the layout io, packed in
// blocks of O. nullopt where src has other neighbours, or more than five dimensions remain.
std::optional<ReorderDesc> AsChannelBlocks(const ReorderDesc& desc);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_TRANSPOSITION_H_
