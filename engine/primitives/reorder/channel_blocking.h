// SPDX-License-Identifier: Apache-2.0
//
// f32 between a plain layout whose channels or whose pixels are neighbours (nchw, nhwc and their
// strided views, 1 to 3 spatial dimensions) and channel blocks (nChw16c, nChw8c). The channels are
// cut into groups of one register, the pixels into runs that are evenly spaced on both sides; a
// generated kernel moves one run of one group:
//
//   transposing  plain[c * channel_step + p] <-> blocked[p * pixel_step + c]      (nchw)
//   copying      plain[p * pixel_step + c]   <-> blocked[p * pixel_step + c]      (nhwc)
//
// Towards blocks, the lanes without a channel are written as zeros. What is here is the same for
// every instruction set: which descriptors are taken, which kernels they need, and the walk over
// groups and runs.
#ifndef ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_
#define ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {

// What a kernel is called with. Steps in bytes.
struct ChannelBlockingArgs {
  const float* src;  // first channel of the group, first pixel of the run
  float* dst;
  int64_t src_step;  // from row to row: channels on the plain side of a transposing kernel, pixels
                     // otherwise
  int64_t dst_step;
  int64_t pixels;  // >= 1
};

struct ChannelBlockingConfig {
  bool transposes = false;
  bool to_blocked = false;
  int group = 16;    // lanes of the blocked side that belong to the group: 16 or 8
  int channels = 0;  // the first of them that hold channels; 0 only towards blocks
};

using CompileChannelBlocking =
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<const jit::Generator>>(
        const ChannelBlockingConfig& config)>;

// kUnimplemented with the reason.
absl::Status RequireChannelBlocking(const ReorderDesc& desc, const Attributes& attributes);

// `lanes`: the widest group, floats of a register. Takes what RequireChannelBlocking() takes.
// kResourceExhausted.
absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelBlocking(const ReorderDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name, int lanes,
                                                                 CompileChannelBlocking compile);

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_CHANNEL_BLOCKING_H_
