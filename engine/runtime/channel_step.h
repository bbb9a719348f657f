// SPDX-License-Identifier: Apache-2.0
//
// A step of a plan that gathers channels from several tensors (graph::GatherChannels): generated
// code for blocked layouts, else a loop. f32; the padded tail of dst is written with zeros.
// Arguments kArgMultipleSrc + i, kArgDst.
#ifndef ENGINE_RUNTIME_CHANNEL_STEP_H_
#define ENGINE_RUNTIME_CHANNEL_STEP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/cpu/isa.h"
#include "engine/graph/network.h"
#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// `srcs` have dst's dims but for the channels. No instruction set above `max_isa` is used.
//   kUnimplemented      another type, or a dimension of more than 2^24
//   kResourceExhausted  memory
absl::StatusOr<std::shared_ptr<const Primitive>> CreateChannelStep(
    const graph::GatherChannels& gather, const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst,
    cpu::Isa max_isa);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_CHANNEL_STEP_H_
