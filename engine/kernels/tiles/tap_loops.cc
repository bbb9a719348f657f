// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/tap_loops.h"

#include <algorithm>
#include <limits>

#include "engine/base/cache_line.h"

namespace tilewire {
namespace {

// The reduction's code stays below what the cache of decoded instructions holds. Of instructions as
// long as these it holds about half of the nominal 1,500.
constexpr int kMaxUnrolledInstructions = 400;
constexpr int kStackBytes = 16;  // holds the number of input blocks that are left

}  // namespace

TapLoopGenerator::TapLoopGenerator(absl::string_view name, const EpilogueConfig& tile,
                                   const TapLoops& loops, size_t args_offset)
    : Generator(name),
      loops_(loops),
      unit_(tile.unit),
      blocks_(tile.blocks),
      pixels_(tile.pixels),
      args_offset_(args_offset),
      runs_(TapRuns(loops.taps, loops.kernel[2])) {}

void TapLoopGenerator::ReserveStack() { sub(rsp, kStackBytes); }
void TapLoopGenerator::ReleaseStack() { add(rsp, kStackBytes); }

void TapLoopGenerator::ZeroSums() {
  for (int i = 0; i < blocks_ * pixels_; ++i) {
    unit_.Zero(this, Vector(i));
  }
}

void TapLoopGenerator::LoadPointers(size_t src_offset, size_t weights_offset) {
  mov(src_block_, Argument(src_offset));
  mov(weights_block_, Argument(weights_offset));
  if (blocks_ > 1) mov(stride_, loops_.weights_oc_block);
  if (blocks_ > 3) lea(stride3_, ptr[stride_ + stride_ * 2]);
}

void TapLoopGenerator::ReduceBlocks() {
  const size_t ahead = offsetof(TapLoopArgs, ahead);
  if (loops_.calls_ahead > 0) mov(ahead_, LoopArgument(ahead));
  if (loops_.full_blocks) ReduceBlocks(loops_.channels, offsetof(TapLoopArgs, full_blocks));
  if (loops_.tail_channels > 0)
    ReduceBlocks(loops_.tail_channels, offsetof(TapLoopArgs, tail_blocks));
  if (loops_.calls_ahead > 0) mov(LoopArgument(ahead), ahead_);
}

// Reduces all input blocks that have `channels` channels. Their number is the argument at
// `count_offset`.
void TapLoopGenerator::ReduceBlocks(int channels, size_t count_offset) {
  Xbyak::Label loop, done;
  mov(rax, LoopArgument(count_offset));
  test(rax, rax);
  jz(done, T_NEAR);
  mov(qword[rsp], rax);
  L(loop);
  ReduceDepth(channels);
  if (loops_.src_block > std::numeric_limits<int32_t>::max()) {
    mov(rax, loops_.src_block);  // no loop inside the block needs it any more
    add(src_block_, rax);
  } else {
    AddBytes(src_block_, loops_.src_block);
  }
  AddBytes(weights_block_, loops_.weights_ic_block);
  dec(qword[rsp]);
  jnz(loop, T_NEAR);
  L(done);
}

void TapLoopGenerator::ReduceDepth(int channels) {
  if (loops_.kernel[0] == 1) return ReduceRows(channels, src_block_, weights_block_);
  Xbyak::Label loop;
  mov(src_depth_, src_block_);
  mov(weights_depth_, weights_block_);
  mov(depths_left_, LoopArgument(offsetof(TapLoopArgs, depth_taps)));
  L(loop);
  ReduceRows(channels, src_depth_, weights_depth_);
  AddBytes(src_depth_, loops_.src_tap[0]);
  AddBytes(weights_depth_, loops_.kernel[1] * loops_.kernel[2] * TapBytes());
  dec(depths_left_);
  jnz(loop, T_NEAR);
}

void TapLoopGenerator::ReduceRows(int channels, const Xbyak::Reg64& src,
                                  const Xbyak::Reg64& weights) {
  if (loops_.kernel[1] == 1) return ReduceTaps(channels, src, weights);
  Xbyak::Label loop;
  mov(src_row_, src);
  mov(weights_row_, weights);
  mov(rows_left_, LoopArgument(offsetof(TapLoopArgs, height_taps)));
  L(loop);
  ReduceTaps(channels, src_row_, weights_row_);
  AddBytes(src_row_, loops_.src_tap[1]);
  AddBytes(weights_row_, loops_.kernel[2] * TapBytes());
  dec(rows_left_);
  jnz(loop, T_NEAR);
}

void TapLoopGenerator::ReduceTaps(int channels, const Xbyak::Reg64& src,
                                  const Xbyak::Reg64& weights) {
  lea(src_, ptr[src + src_bias_]);
  mov(weights_, weights);
  const int unroll = UnrolledChannels(channels);
  unrolled_ = unroll;
  lines_ahead_ = 0;
  if (loops_.calls_ahead > 0) {
    const int64_t lines = unroll * blocks_ * ChannelBytes() / kLineBytes;
    lines_ahead_ = std::max<int64_t>(1, lines / loops_.calls_ahead);
  }
  BeginTaps(channels, unroll);
  for (const TapRun& run : runs_) {
    Xbyak::Label loop;
    if (run.end_pixel == 0) {
      AddBytes(src_, run.taps * loops_.src_tap[2]);
      AddBytes(weights_, run.taps * TapBytes());
      continue;
    }
    if (run.taps > 1) mov(taps_left_, run.taps);
    L(loop);
    ReduceTap(run, channels, unroll);
    if (run.taps == 1) continue;
    dec(taps_left_);
    jnz(loop, T_NEAR);
  }
}

// Reduces one tap for the channels of a block, and leaves the pointers at the next tap.
void TapLoopGenerator::ReduceTap(const TapRun& run, int channels, int unroll) {
  Xbyak::Label loop;
  if (unroll < channels) mov(channels_left_, channels / unroll);
  L(loop);
  for (int channel = 0; channel < unroll; ++channel) ReduceChannel(run, channel);
  if (unroll == channels) {
    AddBytes(src_, loops_.src_tap[2]);
    AddBytes(weights_, TapBytes());
    return;
  }
  AddBytes(src_, unroll * loops_.src_channel);
  AddBytes(weights_, unroll * ChannelBytes());
  dec(channels_left_);
  jnz(loop, T_NEAR);
  AddBytes(src_, loops_.src_tap[2] - channels * loops_.src_channel);
  AddBytes(weights_, TapBytes() - channels * ChannelBytes());
}

// The largest divisor of `channels` whose unrolled code stays small.
int TapLoopGenerator::UnrolledChannels(int channels) const {
  int instructions = 0;
  for (const TapRun& run : runs_)
    instructions += InstructionsOfChannel(std::max(0, run.end_pixel - run.first_pixel));
  int unroll = channels;
  while (unroll > 1 && (channels % unroll != 0 || unroll * instructions > kMaxUnrolledInstructions))
    --unroll;
  return unroll;
}

void TapLoopGenerator::FetchWeightsAhead(int channel) {
  const int64_t begin = channel * lines_ahead_ / unrolled_;
  const int64_t end = (channel + 1) * lines_ahead_ / unrolled_;
  for (int64_t line = begin; line < end; ++line)
    prefetcht1(ptr[ahead_ + static_cast<int>(line * kLineBytes)]);
  if (channel + 1 == unrolled_) AddBytes(ahead_, lines_ahead_ * kLineBytes);
}

Xbyak::RegExp TapLoopGenerator::WeightsOf(int block) const {
  switch (block) {
    case 0:
      return weights_;
    case 1:
      return weights_ + stride_;
    case 2:
      return weights_ + stride_ * 2;
    default:
      return weights_ + stride3_;
  }
}

void TapLoopGenerator::AddBytes(const Xbyak::Reg64& to, int64_t bytes) {
  if (bytes != 0) add(to, static_cast<int>(bytes));
}

}  // namespace tilewire
