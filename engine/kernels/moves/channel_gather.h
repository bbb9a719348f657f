// SPDX-License-Identifier: Apache-2.0
//
// Puts channels of blocked tensors in another order, across blocks and across tensors. Concat and
// shuffle of nChw16c and similar layouts use it where channels do not move in whole blocks.
//
//   dst[n, c, pixel] = srcs[channels[c].tensor][n, channels[c].channel, pixel]
#ifndef ENGINE_KERNELS_MOVES_CHANNEL_GATHER_H_
#define ENGINE_KERNELS_MOVES_CHANNEL_GATHER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/kernels/moves/lane_gather.h"
#include "engine/memory/memory_desc.h"
#include "engine/threading/arena.h"

namespace tilewire {

struct ChannelSource {
  int tensor;
  int64_t channel;
};

// Immutable.
class ChannelGather {
 public:
  // kUnimplemented  a tensor has other blocks than one on dimension 1, of the same size in all
  //                 tensors; its pixels do not follow each other; the unit has no lanes of its
  //                 elements' size
  static absl::Status Require(absl::Span<const MemoryDesc> srcs, const MemoryDesc& dst,
                              const jit::VectorUnit& unit);

  // For tensors that Require() accepts; `channels` has one entry per channel of dst.
  //   kUnimplemented, kResourceExhausted  see jit::Compile()
  static absl::StatusOr<ChannelGather> Create(absl::string_view name, const jit::VectorUnit& unit,
                                              absl::Span<const MemoryDesc> srcs,
                                              const MemoryDesc& dst,
                                              absl::Span<const ChannelSource> channels);

  // Pointers are to the starts of the tensors' buffers. Leaves the padded tail of dst zero.
  void Run(absl::Span<const std::byte* const> srcs, std::byte* dst,
           const threading::Team& team) const;

  int64_t code_bytes() const;

 private:
  // Where a source block begins, for image 0.
  struct SourceBlock {
    int tensor;
    int64_t offset, image_stride;  // bytes
  };
  // One block of dst, or several that one function assembles.
  struct Unit {
    std::vector<SourceBlock> sources;
    std::vector<int64_t> dsts;  // bytes, for image 0
    LaneGatherFunction function;
  };
  struct Plan;

  absl::Status MakeUnits(absl::string_view name, const LaneGatherConfig& config, const Plan& plan,
                         absl::Span<const MemoryDesc> srcs);
  void RunPiece(absl::Span<const std::byte* const> srcs, std::byte* dst, int64_t index) const;

  LaneGather gathers_, transposes_;
  std::vector<Unit> units_;
  int64_t batch_ = 0, run_bytes_ = 0;  // of the pixels of a block
  int64_t dst_offset_ = 0, dst_image_stride_ = 0, dst_block_stride_ = 0;  // bytes
  // A piece of work is some units at some pixels, so that sources that units share stay in cache.
  int64_t piece_bytes_ = 0, pieces_ = 0, units_at_once_ = 1, unit_pieces_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_MOVES_CHANNEL_GATHER_H_
