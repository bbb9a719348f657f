// SPDX-License-Identifier: Apache-2.0
//
// Between two layouts of which at least one has channels that are neighbours, in blocks (nChw16c,
// nChw8c) or altogether (nhwc); the other has blocks too, or neighbouring channels or pixels
// (nchw), 1 to 3 spatial dimensions, strided views included. From any type to any, by way of f32,
// with output scales for the tensor or for each channel and a sum. The channels are cut into groups
// of one register, the pixels into runs that are evenly spaced on both sides; a generated kernel
// moves one run of one group:
//
//   transposing  pixels[c * channel_step + p] <-> lanes[p * pixel_step + c]      (nchw)
//   copying      lanes[p * pixel_step + c]    <-> lanes[p * pixel_step + c]      (nhwc)
//
// Towards blocks, the lanes without a channel are written as zeros. What is here is the same for
// every instruction set: which descriptors are taken, which kernels they need, and the walk over
// groups and runs.
#ifndef ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_
#define ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/primitives/reorder/channel_blocking_generator.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {

// The kernels of one instruction set, of 16 and of 8 lanes. kResourceExhausted.
absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileAvx512ChannelBlocking(
    const ChannelBlockingConfig& config);
absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileAvx2ChannelBlocking(
    const ChannelBlockingConfig& config);
inline absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileChannelBlocking(
    cpu::Isa isa, const ChannelBlockingConfig& config) {
  return isa.Includes(cpu::Isa::kAvx512) ? CompileAvx512ChannelBlocking(config)
                                         : CompileAvx2ChannelBlocking(config);
}

TILEWIRE_ROW(ReorderDesc, ChannelBlocking);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_
