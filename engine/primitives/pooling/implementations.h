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
TILEWIRE_RESOLVE(PoolingDesc, Bf16Maximum);

// The rows for tensors whose pixels are neighbours (nchw), of any type that pooling takes. A row of
// src is widened to 32 bits and padded with what changes no result; generated code combines it with
// the row of windows it belongs to, one vector of windows at a time.
TILEWIRE_ROW(PoolingDesc, PlainRows);

TILEWIRE_ROW(PoolingDesc, Reference);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes);

// kUnimplemented  not u8, s8 or s32; the message names the type
absl::Status RequireInteger(const MemoryDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
