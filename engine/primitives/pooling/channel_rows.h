// SPDX-License-Identifier: Apache-2.0
//
// The rows for tensors whose channels are neighbours, in blocks (nChw16c, nChw8c) or altogether
// (nhwc): a vector holds channels of one pixel. Shared by the rows of every instruction set.
#ifndef ENGINE_PRIMITIVES_POOLING_CHANNEL_ROWS_H_
#define ENGINE_PRIMITIVES_POOLING_CHANNEL_ROWS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

// A row for integers takes u8, s8 and s32, another f32. kUnimplemented with the reason.
absl::StatusOr<PoolingDesc> ResolveChannelRows(const PoolingDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelRows(const PoolingDesc& desc,
                                                             const Attributes& attributes,
                                                             const ImplementationFacts& facts);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_CHANNEL_ROWS_H_
