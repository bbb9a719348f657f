// SPDX-License-Identifier: Apache-2.0
//
// Emits the loops of a tile of a convolution or inner product, whatever its sums are:
//
//   for input block, depth tap, height tap   run-time counts; the caller leaves out the taps that
//                                            lie in the padding
//     for width tap                          emitted for the pixels that do not read it from the
//                                            padding
//       for channel of the block             ReduceChannel(), which the derived class emits
//
// A channel is what one step of the reduction takes: four bytes of a pixel and a vector of weights
// for an f32 channel or a quad of 8-bit ones; other sizes of it are fields of TapLoops.
//
// The loops do not touch the sums. By default these stand in the first vector registers, where
// ZeroSums() clears them. A kernel that keeps them elsewhere, as in the tiles of a matrix unit,
// overrides ZeroSums(), adds to them in ReduceChannel(), and once ReduceBlocks() is done spills
// them to memory, from where AccumulatorEpilogue::LoadSums() takes as many at a time as registers
// hold.
//
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_TILES_TAP_LOOPS_H_
#define ENGINE_KERNELS_TILES_TAP_LOOPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/tap_runs.h"

namespace tilewire {

// Strides are bytes. 1D and 2D have leading dimensions of size 1.
struct TapLoops {
  int channels = 16;            // of a full input block
  int tail_channels = 0;        // of the last one, if it is not full
  bool full_blocks = true;      // whether there are any
  int tap_channels = 16;        // channels that one tap of an input block has weights for
  int64_t weights_channel = 0;  // bytes of a channel's weights of one output block; 0: a vector
  int64_t src_channel = 4, src_pixel = 0, src_block = 0;
  std::array<int64_t, 3> src_tap{0, 0, 0}, kernel{1, 1, 1};  // depth, height, width
  int64_t weights_oc_block = 0, weights_ic_block = 0;
  std::vector<TapRange> taps;  // for each pixel, the width taps that lie inside src
  // Weights that later calls read are prefetched in passing: as many calls as this prefetch all
  // weights of another group of output blocks. 0: none are prefetched. Only without depth.
  int64_t calls_ahead = 0;
};

// The part of a function's arguments that counts its loops.
struct TapLoopArgs {
  int64_t full_blocks;              // input blocks
  int64_t tail_blocks;              // 1 when the block with tail_channels follows them, else 0
  int64_t depth_taps, height_taps;  // >= 1 unless there are no blocks
  mutable const void* ahead;        // the weights to prefetch; on return, the first not prefetched
};

class TapLoopGenerator : public jit::Generator {
 protected:
  // `args_offset`: of TapLoopArgs in the function's arguments.
  TapLoopGenerator(absl::string_view name, const EpilogueConfig& tile, const TapLoops& loops,
                   size_t args_offset);

  // src_ and weights_ point to the first of the unrolled channels of the current tap.
  virtual void ReduceChannel(const TapRun& run, int channel) = 0;
  // How many instructions ReduceChannel() emits for `pixels` pixels.
  virtual int InstructionsOfChannel(int pixels) const = 0;
  // Called when a row of taps begins: a block has `channels`, `unroll` of them are emitted one
  // after the other.
  virtual void BeginTaps(int /*channels*/, int /*unroll*/) {}

  void ReserveStack();  // before the loops, after Preamble()
  void ReleaseStack();
  virtual void ZeroSums();
  // Sets src_block_, weights_block_ and the strides of weights.
  void LoadPointers(size_t src_offset, size_t weights_offset);
  void ReduceBlocks();
  // To be emitted with each of the unrolled channels: prefetches its share of later weights into
  // the second cache, at an even pace.
  void FetchWeightsAhead(int channel);

  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }
  Xbyak::Xmm Sum(int block, int pixel) const { return Vector(block * pixels_ + pixel); }
  Xbyak::Xmm Weights(int block) const { return Vector(blocks_ * pixels_ + block); }
  // All vector registers but those of the sums.
  std::vector<int> FreeVectors() const { return unit_.RegistersFrom(blocks_ * pixels_); }
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }
  Xbyak::RegExp WeightsOf(int block) const;
  void AddBytes(const Xbyak::Reg64& to, int64_t bytes);
  int64_t VectorBytes() const { return unit_.bytes(); }

  // rdi holds the arguments.
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx;              // of the current tap
  const Xbyak::Reg64 src_row_ = r8, weights_row_ = r9;        // of the current height tap
  const Xbyak::Reg64 src_depth_ = r10, weights_depth_ = r11;  // of the current depth tap
  const Xbyak::Reg64 src_block_ = r12, weights_block_ = r13;  // of the current input block
  const Xbyak::Reg64 stride_ = r14;                           // between output blocks of weights
  const Xbyak::Reg64 stride3_ = r15;                          // three times stride_

  const TapLoops loops_;
  const VectorUnit unit_;
  const int blocks_, pixels_;
  // src_ points this many bytes past the tile's first pixel.
  int src_bias_ = 0;

 private:
  void ReduceBlocks(int channels, size_t count_offset);
  void ReduceDepth(int channels);
  void ReduceRows(int channels, const Xbyak::Reg64& src, const Xbyak::Reg64& weights);
  void ReduceTaps(int channels, const Xbyak::Reg64& src, const Xbyak::Reg64& weights);
  void ReduceTap(const TapRun& run, int channels, int unroll);
  int UnrolledChannels(int channels) const;
  Xbyak::Address LoopArgument(size_t offset) { return Argument(args_offset_ + offset); }
  int64_t ChannelBytes() const {
    return loops_.weights_channel != 0 ? loops_.weights_channel : VectorBytes();
  }
  int64_t TapBytes() const { return loops_.tap_channels * ChannelBytes(); }

  const Xbyak::Reg64 rows_left_ = rcx, taps_left_ = rbx, channels_left_ = rbp;
  const Xbyak::Reg64 depths_left_ = rax;
  const Xbyak::Reg64 ahead_ = r10;  // without depth: TapLoopArgs::ahead

  const size_t args_offset_;
  const std::vector<TapRun> runs_;
  int unrolled_ = 0;         // channels that are emitted one after the other
  int64_t lines_ahead_ = 0;  // of weights, that these prefetch
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_TAP_LOOPS_H_
