// SPDX-License-Identifier: Apache-2.0
//
// Tensors of grouped convolutions whose groups do not begin at block boundaries, and copies of them
// whose groups do: [N, G * C, ...] in blocks, and [N, G * C rounded up to blocks, ...] in the same.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPING_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPING_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/moves/channel_gather.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

// kUnimplemented  src or dst is not in channel blocks whose pixels follow each other
absl::Status RequireRegrouping(const ConvolutionDesc& desc, const VectorUnit& unit);

struct Regrouping {
  struct Copies {
    bool in = false, out = false;
  };
  // All images of a tensor that RequireRegrouping() accepts. Where there is one group, or groups
  // fill their blocks, `blocks` is the tensor itself, whatever its layout, and nothing is copied.
  //   kResourceExhausted  the copy is too large
  //   kUnimplemented      see ChannelGather
  static absl::StatusOr<Regrouping> Of(absl::string_view name, const MemoryDesc& tensor,
                                       int64_t groups, const VectorUnit& unit,
                                       const Copies& copies);

  int64_t code_bytes() const { return (in ? in->code_bytes() : 0) + (out ? out->code_bytes() : 0); }

  MemoryDesc blocks;
  std::optional<ChannelGather> in, out;  // copies to the blocks, and from them
  int64_t scratch_bytes = 0;             // of the blocks
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_REGROUPING_H_
