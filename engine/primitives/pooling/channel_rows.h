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

// Layouts and sizes alone: the caller looks at the type. kUnimplemented with the reason.
absl::StatusOr<PoolingDesc> ResolveChannelRows(cpu::Isa isa, const PoolingDesc& desc,
                                               const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelRows(cpu::Isa isa, const PoolingDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_CHANNEL_ROWS_H_
