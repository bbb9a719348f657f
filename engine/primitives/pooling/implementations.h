// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_

#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

// The rows for tensors whose channels are neighbours, in blocks (nChw16c, nChw8c) or altogether
// (nhwc): a vector holds channels of one pixel. Shared by the rows of every instruction set.
// A row for integers takes u8, s8 and s32, another f32, and one the maximum of bf16 in blocks.
TILEWIRE_ROW(PoolingDesc, ChannelRows);
// Another takes the maximum of f32 for training, whose windows have 256 taps at most.
TILEWIRE_RESOLVE(PoolingDesc, Bf16Maximum);
TILEWIRE_RESOLVE(PoolingDesc, MaximumPlacesRows);

// The rows for tensors whose pixels are neighbours (nchw), of any type that pooling takes. A row of
// src is widened to 32 bits and padded with what changes no result; generated code combines it with
// the row of windows it belongs to, one vector of windows at a time.
TILEWIRE_ROW(PoolingDesc, PlainRows);

// The maximum for training and its places, and backward, of tensors whose channels are neighbours:
// plain loops over a few channels (lanes.h). Places are u8.
TILEWIRE_ROW(PoolingDesc, MaximumPlaces);
TILEWIRE_ROW(PoolingDesc, LanesBackward);

// Backward of maxima over planes of blocks of 16 channels, by generated code.
TILEWIRE_ROW(PoolingDesc, MaximumBackward);

// Backward of averages whose one window holds a whole plane, whose pixels follow each other.
TILEWIRE_ROW(PoolingDesc, WholeAverageBackward);

TILEWIRE_ROW(PoolingDesc, Reference);

TILEWIRE_ROW(PoolingDesc, ReferenceBackward);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes);

// The arguments of forward and of backward, with the workspace where there is one.
PrimitiveInfo InfoOf(const Request<PoolingDesc>& request);
PrimitiveInfo BackwardInfoOf(const Request<PoolingDesc>& request);

// Forward for training saves the places of maxima.
inline bool SavesPlaces(const PoolingDesc& desc) {
  return desc.algorithm == PoolingAlgorithm::kMax && desc.prop_kind != PropKind::kForwardInference;
}
// u8 or s32, by the taps of a window.
DataType PlaceType(const PoolingDesc& desc);
// The workspace of a problem whose dst has a layout.
MemoryDesc PlacesOf(const PoolingDesc& desc);
// The descriptor with layouts of diff_src and diff_dst in the place of `any`.
absl::StatusOr<PoolingDesc> WithGradientLayouts(const PoolingDesc& desc);
// kUnimplemented  the maximum for training, whose places are to be saved
absl::Status RequireNoPlaces(const PoolingDesc& desc);

// kUnimplemented  not u8, s8 or s32; the message names the type
absl::Status RequireInteger(const MemoryDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
