// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct_generator.h"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/tap_runs.h"

namespace tilewire::convolution {
namespace {

// The reduction's code stays below what the cache of decoded instructions holds: of instructions as
// long as these, about half of the nominal 1,500.
constexpr int kMaxUnrolledInstructions = 400;
// Weights stream from the second cache: each line is asked for this far ahead, a block of 16 x 16.
constexpr int64_t kWeightsAhead = 1024;

class DirectGenerator final : public jit::Generator {
 public:
  DirectGenerator(absl::string_view name, const DirectConfig& config)
      : Generator(name),
        config_(config),
        lanes_(config.epilogue.lanes),
        blocks_(config.epilogue.blocks),
        pixels_(config.epilogue.pixels),
        runs_(TapRuns(config.taps, config.kernel[2])),
        epilogue_(this, config.epilogue,
                  {.dst = src_, .bias = weights_, .spare = rax, .scratch = FreeVectors()}) {}

 private:
  // rdi holds the arguments. After the reduction src_ and weights_ hold dst and bias.
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx;              // of the current tap
  const Xbyak::Reg64 src_row_ = r8, weights_row_ = r9;        // of the current height tap
  const Xbyak::Reg64 src_depth_ = r10, weights_depth_ = r11;  // of the current depth tap
  const Xbyak::Reg64 src_plane_ = r10, src_plane3_ = r11;     // without depth: see SrcOf()
  const Xbyak::Reg64 src_block_ = r12, weights_block_ = r13;  // of the current input block
  const Xbyak::Reg64 stride_ = r14,
                     stride3_ = r15;  // between output blocks of weights, and thrice that
  const Xbyak::Reg64 rows_left_ = rcx, taps_left_ = rbx, channels_left_ = rbp;
  const Xbyak::Reg64 depths_left_ = rax;
  // On the stack: input blocks left.
  static constexpr int kStackBytes = 16;

  Xbyak::Xmm Sum(int block, int pixel) const {
    return VectorRegister(lanes_, block * pixels_ + pixel);
  }
  Xbyak::Xmm Weights(int block) const { return VectorRegister(lanes_, blocks_ * pixels_ + block); }
  Xbyak::Xmm Broadcast(int i) const {
    const int first = blocks_ * (pixels_ + 1);
    return VectorRegister(lanes_, first + i % std::max(1, config_.vector_registers - first));
  }
  bool EmbedsBroadcasts() const { return lanes_ == 16 && blocks_ == 1; }
  std::vector<int> FreeVectors() const {
    std::vector<int> free;
    for (int i = blocks_ * pixels_; i < config_.vector_registers; ++i) free.push_back(i);
    return free;
  }
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }

  void Emit() override {
    Preamble();
    sub(rsp, kStackBytes);
    InitSums();
    LoadPointers();
    if (config_.full_blocks) ReduceBlocks(lanes_, offsetof(DirectArgs, full_blocks));
    if (config_.tail_channels > 0)
      ReduceBlocks(config_.tail_channels, offsetof(DirectArgs, tail_blocks));
    Finish();
    add(rsp, kStackBytes);
    Postamble();
    epilogue_.EmitTables();
  }

  void LoadPointers() {
    mov(src_block_, Argument(offsetof(DirectArgs, src)));
    mov(weights_block_, Argument(offsetof(DirectArgs, weights)));
    if (blocks_ > 1) mov(stride_, config_.weights_oc_block);
    if (blocks_ > 3) lea(stride3_, ptr[stride_ + stride_ * 2]);
    if (StepsChannelsByRegister()) {
      mov(src_plane_, config_.src_channel);
      lea(src_plane3_, ptr[src_plane_ + src_plane_ * 2]);
    }
  }

  // A chain that begins with a sum: in chunks the old dst has to be taken before it is overwritten.
  const SumPostOp* LeadingSum() const {
    const auto entries = config_.epilogue.post_ops.entries();
    return entries.empty() ? nullptr : std::get_if<SumPostOp>(&entries[0]);
  }

  void ZeroSums() {
    for (int i = 0; i < blocks_ * pixels_; ++i) {
      const Xbyak::Xmm sum = VectorRegister(lanes_, i);
      if (lanes_ == 16) {
        vpxord(sum, sum, sum);
      } else {
        vxorps(sum, sum, sum);
      }
    }
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
    epilogue_.LoadSums();
    L(done);
  }

  // All input blocks that have `channels` channels; their number is the argument at `count_offset`.
  void ReduceBlocks(int channels, size_t count_offset) {
    Xbyak::Label loop, done;
    mov(rax, Argument(count_offset));
    test(rax, rax);
    jz(done, T_NEAR);
    mov(qword[rsp], rax);
    L(loop);
    ReduceDepth(channels);
    AddBytes(src_block_, config_.src_block);
    AddBytes(weights_block_, config_.weights_ic_block);
    dec(qword[rsp]);
    jnz(loop, T_NEAR);
    L(done);
  }

  void ReduceDepth(int channels) {
    if (config_.kernel[0] == 1) return ReduceRows(channels, src_block_, weights_block_);
    Xbyak::Label loop;
    mov(src_depth_, src_block_);
    mov(weights_depth_, weights_block_);
    mov(depths_left_, Argument(offsetof(DirectArgs, depth_taps)));
    L(loop);
    ReduceRows(channels, src_depth_, weights_depth_);
    AddBytes(src_depth_, config_.src_tap[0]);
    AddBytes(weights_depth_, config_.kernel[1] * config_.kernel[2] * TapBytes());
    dec(depths_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceRows(int channels, const Xbyak::Reg64& src, const Xbyak::Reg64& weights) {
    if (config_.kernel[1] == 1) return ReduceTaps(channels, src, weights);
    Xbyak::Label loop;
    mov(src_row_, src);
    mov(weights_row_, weights);
    mov(rows_left_, Argument(offsetof(DirectArgs, height_taps)));
    L(loop);
    ReduceTaps(channels, src_row_, weights_row_);
    AddBytes(src_row_, config_.src_tap[1]);
    AddBytes(weights_row_, config_.kernel[2] * TapBytes());
    dec(rows_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceTaps(int channels, const Xbyak::Reg64& src, const Xbyak::Reg64& weights) {
    lea(src_, ptr[src + SrcBias()]);
    mov(weights_, weights);
    pixels_prefetched_ = 0;
    const int unroll = UnrolledChannels(channels);
    for (const TapRun& run : runs_) {
      Xbyak::Label loop;
      if (run.end_pixel == 0) {
        AddBytes(src_, run.taps * config_.src_tap[2]);
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

  // One tap for the channels of a block; then the pointers are at the next tap.
  void ReduceTap(const TapRun& run, int channels, int unroll) {
    const int64_t step_src = unroll * config_.src_channel;
    const int64_t step_weights = unroll * VectorBytes();
    Xbyak::Label loop;
    if (unroll < channels) mov(channels_left_, channels / unroll);
    L(loop);
    for (int channel = 0; channel < unroll; ++channel) {
      if (channels == lanes_) PrefetchNextBlock(unroll);
      ReduceChannel(run, channel);
    }
    if (unroll == channels) {
      AddBytes(src_, config_.src_tap[2]);
      AddBytes(weights_, TapBytes());
      return;
    }
    AddBytes(src_, step_src);
    AddBytes(weights_, step_weights);
    dec(channels_left_);
    jnz(loop, T_NEAR);
    AddBytes(src_, config_.src_tap[2] - channels * config_.src_channel);
    AddBytes(weights_, TapBytes() - channels * VectorBytes());
  }

  void ReduceChannel(const TapRun& run, int channel) {
    for (int block = 0; block < blocks_; ++block) {
      const int64_t offset = channel * VectorBytes();
      vmovups(Weights(block), ptr[WeightsOf(block) + static_cast<int>(offset)]);
      if (config_.tap_channels == lanes_ && offset % 64 == 0) {
        prefetcht0(ptr[WeightsOf(block) + static_cast<int>(offset + kWeightsAhead)]);
      }
    }
    for (int pixel = run.first_pixel; pixel < run.end_pixel; ++pixel) {
      const Xbyak::RegExp src = SrcOf(pixel, channel);
      if (config_.depthwise) {
        vfmadd231ps(Sum(0, pixel), Weights(0), ptr[src]);
        continue;
      }
      if (EmbedsBroadcasts()) {
        vfmadd231ps(Sum(0, pixel), Weights(0), ptr_b[src]);
        continue;
      }
      const Xbyak::Xmm broadcast = Broadcast(pixel);
      vbroadcastss(broadcast, ptr[src]);
      for (int block = 0; block < blocks_; ++block)
        vfmadd231ps(Sum(block, pixel), Weights(block), broadcast);
    }
  }

  // The next block's lines of src are far from this block's: they are asked for in time, spread
  // over the `steps` of the first tap's code.
  void PrefetchNextBlock(int steps) {
    if (config_.src_channel != 4) return;
    for (int i = 0; i < DivUp(pixels_, steps) && pixels_prefetched_ < pixels_; ++i) {
      const int64_t pixel = pixels_prefetched_++ * config_.src_pixel;
      prefetcht0(ptr[src_ + static_cast<int>(config_.src_block + pixel - SrcBias())]);
    }
  }

  Xbyak::RegExp WeightsOf(int block) const {
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

  // Channels that are far apart (colour planes) are reached through registers: their distance does
  // not fit a short displacement.
  bool StepsChannelsByRegister() const {
    return config_.kernel[0] == 1 && config_.tap_channels <= 4 && config_.src_channel > 256;
  }

  Xbyak::RegExp SrcOf(int pixel, int channel) const {
    const int offset = static_cast<int>(pixel * config_.src_pixel) - SrcBias();
    if (!StepsChannelsByRegister()) {
      return src_ + offset + static_cast<int>(channel * config_.src_channel);
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

  // The largest divisor of `channels` whose unrolled code stays small.
  int UnrolledChannels(int channels) const {
    int instructions = 0;
    for (const TapRun& run : runs_) {
      const int pixels = std::max(0, run.end_pixel - run.first_pixel);
      instructions += blocks_ + pixels * (blocks_ + (EmbedsBroadcasts() ? 0 : 1));
    }
    int unroll = channels;
    while (unroll > 1 &&
           (channels % unroll != 0 || unroll * instructions > kMaxUnrolledInstructions))
      --unroll;
    return unroll;
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
    epilogue_.ApplyPostOps(/*skip_sum=*/config_.chunked);
    epilogue_.ZeroTail();
    L(store);
    epilogue_.Store();
  }

  void AddBytes(const Xbyak::Reg64& to, int64_t bytes) {
    if (bytes != 0) add(to, static_cast<int>(bytes));
  }
  // src_ points this far behind the tile's first pixel, so that more displacements fit one byte:
  // EVEX counts those of broadcasts in elements, -128 to 127.
  int SrcBias() const { return lanes_ == 16 && !config_.depthwise ? 512 : 0; }
  int64_t VectorBytes() const { return lanes_ * 4; }
  int64_t TapBytes() const { return config_.tap_channels * VectorBytes(); }

  const DirectConfig config_;
  const int lanes_, blocks_, pixels_;
  const std::vector<TapRun> runs_;
  AccumulatorEpilogue epilogue_;
  int pixels_prefetched_ = 0;  // since the current ReduceTaps began
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDirect(absl::string_view name,
                                                                     const DirectConfig& config) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                        jit::Compile<DirectGenerator>(name, config));
  return generator;
}

}  // namespace tilewire::convolution
