// SPDX-License-Identifier: Apache-2.0
//
// How the code of a tile comes about, with 3 x 2 sums (3 pixels, 2 blocks) as an example. The loops
// over input blocks, depth, height and width taps are those of tap_loops.h. Inside them stands,
// unrolled, the code of as many channels as the cache of decoded instructions allows:
//
//   load   w0 = weights of the channel for output block 0
//   load   w1 = weights of the channel for output block 1
//   b = src[pixel 0][channel] in every lane;  sum(0,0) += w0 b;  sum(1,0) += w1 b
//   b = src[pixel 1][channel] in every lane;  sum(0,1) += w0 b;  sum(1,1) += w1 b
//   b = src[pixel 2][channel] in every lane;  sum(0,2) += w0 b;  sum(1,2) += w1 b
//
// A tile has enough sums to hide the latency of the multiply-adds, and each load serves several of
// them; tiling.h chooses its size. With one block only, a broadcast serves a single multiply-add
// and is embedded in that instruction where the unit can do so. Several registers take turns for b.
//
// Then come the details that let the loads keep up. src_ points past the first pixel, so that
// displacements to both sides fit one byte and the code stays short. Weights are prefetched from
// the second cache into the first one block ahead, the next input block's lines of src, or the next
// tile's, in the steps of the first tap, and, if asked for, another group's weights into the second
// cache (FetchWeightsAhead of tap_loops.h). If the input channels of a layer do not fit the cache,
// the caller cuts them into chunks; between the calls the sums wait in dst. The last call applies
// bias and post-ops and stores (accumulator_epilogue.h).
#include "engine/primitives/convolution/direct/direct_generator.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <variant>

#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"
#include "engine/kernels/tiles/accumulator_tile.h"
#include "engine/kernels/tiles/block_unit.h"

namespace tilewire::convolution {
namespace {

// Weights stream from the second cache: each line is prefetched this many bytes ahead, which is a
// block of 16 x 16.
constexpr int64_t kWeightsAhead = 1024;

// Where the lines of `pixels` neighbours begin at the latest, in bytes from the first pixel.
std::vector<int64_t> LinesOf(int pixels, int64_t pixel_bytes) {
  std::vector<int64_t> lines;
  for (int pixel = 0; pixel < pixels; ++pixel) {
    const int64_t at = pixel * pixel_bytes;
    const bool near = !lines.empty() && at < lines.back() + kLineBytes;
    if (!near || pixel + 1 == pixels) lines.push_back(at);
  }
  return lines;
}

class DirectGenerator final : public TapLoopGenerator {
 public:
  DirectGenerator(absl::string_view name, const DirectConfig& config)
      : TapLoopGenerator(name, config.epilogue, config.loops, offsetof(DirectArgs, loops)),
        config_(config),
        epilogue_(this, config.epilogue,
                  {.dst = src_,
                   .bias = weights_,
                   .spare = rax,
                   .scratch = FreeVectors(),
                   .slopes = weights_}) {
    // Displacements on both sides of src_ are twice as many that fit one byte.
    if (!config.depthwise) src_bias_ = unit_.BroadcastReach();
    next_lines_ = LinesOf(pixels_, loops_.src_pixel);
  }

 private:
  const Xbyak::Opmask src_mask_ = k3;
  // After the reduction src_ holds dst, and weights_ bias and then the slopes of a PRelu.
  const Xbyak::Reg64 src_plane_ = r10, src_plane3_ = r11;  // without depth: see SrcOf()

  // Whether vectors of src are read under a mask.
  bool HasPackedTail() const { return config_.packed_src && config_.epilogue.tail_lanes != 0; }

  Xbyak::Xmm Broadcast(int i) const {
    const int first = blocks_ * (pixels_ + 1);
    return Vector(first + i % std::max(1, unit_.registers() - first));
  }
  bool EmbedsBroadcasts() const { return unit_.has_masks() && blocks_ == 1; }
  // A register of an output block, as wide as the block's channels need (block_unit.h).
  Xbyak::Xmm Narrow(int block, const Xbyak::Xmm& v) const {
    const int tail_lanes = block == blocks_ - 1 ? config_.epilogue.tail_lanes : 0;
    return UnitOfBlock(unit_, tail_lanes).Vector(v.getIdx());
  }

  void Emit() override {
    Preamble();
    ReserveStack();
    InitSums();
    if (HasPackedTail()) {
      mov(eax, (1 << config_.epilogue.tail_lanes) - 1);
      kmovw(src_mask_, eax);
    }
    LoadPointers(offsetof(DirectArgs, src), offsetof(DirectArgs, weights));
    FetchPixelsBelow();
    FetchDst();
    if (StepsChannelsByRegister()) {
      mov(src_plane_, loops_.src_channel);
      lea(src_plane3_, ptr[src_plane_ + src_plane_ * 2]);
    }
    ReduceBlocks();
    Finish();
    ReleaseStack();
    Postamble();
    epilogue_.EmitTables();
  }

  void FetchPixelsBelow() {
    if (config_.pixels_below.empty()) return;
    mov(src_, Argument(offsetof(DirectArgs, src)));
    for (int64_t offset : config_.pixels_below) prefetcht0(ptr[src_ + static_cast<int>(offset)]);
  }

  void FetchDst() {
    if (!config_.fetches_dst) return;
    const EpilogueConfig& tile = config_.epilogue;
    mov(src_, Argument(offsetof(DirectArgs, dst)));
    for (int block = 0; block < blocks_; ++block) {
      for (int64_t at : LinesOf(pixels_, tile.dst_pixel_bytes))
        prefetchw(ptr[src_ + static_cast<int>(block * tile.dst_block_bytes + at)]);
    }
  }

  // The sum with which the chain of post-ops begins, or null. If input channels come in chunks, the
  // old dst must be added before the first chunk overwrites it.
  const SumPostOp* LeadingSum() const {
    const auto entries = config_.epilogue.post_ops.entries();
    return entries.empty() ? nullptr : std::get_if<SumPostOp>(&entries[0]);
  }

  void InitSums() {
    if (!config_.chunked) return ZeroSums();
    Xbyak::Label later, done;
    mov(src_, Argument(offsetof(DirectArgs, dst)));
    cmp(Argument(offsetof(DirectArgs, first)), 0);
    je(later, T_NEAR);
    ZeroSums();
    if (LeadingSum() != nullptr) epilogue_.AddScaledDst(LeadingSum()->scale);
    jmp(done, T_NEAR);
    L(later);
    epilogue_.LoadSums(epilogue_.Dst());
    L(done);
  }

  void BeginTaps(int channels, int unroll) override {
    lines_prefetched_ = 0;
    prefetch_steps_ = channels == unit_.lanes() ? unroll : 0;
  }

  int InstructionsOfChannel(int pixels) const override {
    return blocks_ + pixels * (blocks_ + (EmbedsBroadcasts() ? 0 : 1));
  }

  void ReduceChannel(const TapRun& run, int channel) override {
    PrefetchNextBlock();
    FetchWeightsAhead(channel);
    for (int block = 0; block < blocks_; ++block) {
      const int64_t offset = channel * VectorBytes();
      vmovups(Narrow(block, Weights(block)), ptr[WeightsOf(block) + static_cast<int>(offset)]);
      if (loops_.tap_channels == unit_.lanes() && offset % kLineBytes == 0) {
        prefetcht0(ptr[WeightsOf(block) + static_cast<int>(offset + kWeightsAhead)]);
      }
    }
    for (int pixel = run.first_pixel; pixel < run.end_pixel; ++pixel) {
      const Xbyak::RegExp src = SrcOf(pixel, channel);
      if (config_.depthwise) {
        const Xbyak::Xmm sum = Narrow(0, Sum(0, pixel));
        vfmadd231ps(HasPackedTail() ? sum | src_mask_ : sum, Narrow(0, Weights(0)), ptr[src]);
        continue;
      }
      if (EmbedsBroadcasts()) {
        EmitMultiplyAdd(this, config_.pairs, Narrow(0, Sum(0, pixel)), Narrow(0, Weights(0)),
                        ptr_b[src]);
        continue;
      }
      const Xbyak::Xmm broadcast = Broadcast(pixel);
      vbroadcastss(broadcast, ptr[src]);
      for (int block = 0; block < blocks_; ++block) {
        EmitMultiplyAdd(this, config_.pairs, Narrow(block, Sum(block, pixel)),
                        Narrow(block, Weights(block)), Narrow(block, broadcast));
      }
    }
  }

  // The lines of a later block of src, or of this block for the next tile, are far from this
  // block's. They are prefetched in time, spread over the steps of the first tap's code.
  void PrefetchNextBlock() {
    if (prefetch_steps_ == 0 || loops_.src_channel != 4) return;
    if (loops_.src_block > std::numeric_limits<int32_t>::max() / 4) return;  // no displacement
    const int lines = static_cast<int>(next_lines_.size());
    const int64_t block =
        config_.fetches_next_tile ? pixels_ * loops_.src_pixel : BlocksAhead() * loops_.src_block;
    for (int i = 0; i < DivUp(lines, prefetch_steps_) && lines_prefetched_ < lines; ++i) {
      prefetcht0(
          ptr[src_ + static_cast<int>(block + next_lines_[lines_prefetched_++] - src_bias_)]);
    }
  }

  // A single tap of 8 channels takes less than 50 cycles, which is less than the third cache takes.
  int BlocksAhead() const {
    const int64_t taps = loops_.kernel[0] * loops_.kernel[1] * loops_.kernel[2];
    return unit_.lanes() <= 8 && taps == 1 ? 3 : 1;
  }

  // Channels that are far apart (colour planes) are reached through registers, because their
  // distance does not fit a short displacement.
  bool StepsChannelsByRegister() const {
    return loops_.kernel[0] == 1 && loops_.tap_channels <= 4 && loops_.src_channel > 256;
  }

  Xbyak::RegExp SrcOf(int pixel, int channel) const {
    const int offset = static_cast<int>(pixel * loops_.src_pixel) - src_bias_;
    if (!StepsChannelsByRegister()) {
      return src_ + offset + static_cast<int>(channel * loops_.src_channel);
    }
    switch (channel) {
      case 0:
        return src_ + offset;
      case 1:
        return src_ + src_plane_ + offset;
      case 2:
        return src_ + src_plane_ * 2 + offset;
      default:
        return src_ + src_plane3_ + offset;
    }
  }

  void Finish() {
    Xbyak::Label store;
    mov(src_, Argument(offsetof(DirectArgs, dst)));
    if (config_.chunked) {
      cmp(Argument(offsetof(DirectArgs, last)), 0);
      je(store, T_NEAR);
    }
    mov(weights_, Argument(offsetof(DirectArgs, bias)));
    epilogue_.AddBias();
    if (config_.epilogue.post_ops.Slopes() != nullptr)
      mov(weights_, Argument(offsetof(DirectArgs, slopes)));
    epilogue_.ApplyPostOps(/*skip_sum=*/config_.chunked);
    epilogue_.ZeroTail();
    L(store);
    epilogue_.Store();
  }

  const DirectConfig config_;
  AccumulatorEpilogue epilogue_;
  std::vector<int64_t> next_lines_;  // of a tile's pixels in one block: bytes from the first
  int lines_prefetched_ = 0;         // since the current row of taps began
  int prefetch_steps_ = 0;           // over which they are spread; 0: none are prefetched
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDirect(absl::string_view name,
                                                                     const DirectConfig& config) {
  return jit::Compile<DirectGenerator>(name, config);
}

}  // namespace tilewire::convolution
