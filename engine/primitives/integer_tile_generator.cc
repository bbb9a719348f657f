// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/integer_tile_generator.h"

#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/primitives/tap_runs.h"

namespace tilewire {
namespace {

// The reduction's code stays below what the cache of decoded instructions holds: of instructions as
// long as these, about half of the nominal 1,500.
constexpr int kMaxUnrolledInstructions = 400;
// Weights stream from the second cache: each line is asked for this far ahead.
constexpr int64_t kWeightsAhead = 1024;
constexpr int kQuadBytes = 4;

class IntegerGenerator final : public jit::Generator {
 public:
  IntegerGenerator(absl::string_view name, const IntegerConfig& config)
      : Generator(name),
        config_(config),
        lanes_(config.epilogue.lanes),
        blocks_(config.epilogue.blocks),
        pixels_(config.epilogue.pixels),
        runs_(TapRuns(config.taps, config.kernel[2])),
        epilogue_(this, config.epilogue,
                  {.dst = src_,
                   .bias = weights_,
                   .spare = rax,
                   .scratch = FreeVectors(),
                   .scales = src_row_,
                   .compensation = weights_row_}) {}

 private:
  // rdi holds the arguments. After the reduction src_, weights_, src_row_ and weights_row_ hold
  // dst, bias, scales and compensation.
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx;              // of the current tap
  const Xbyak::Reg64 src_row_ = r8, weights_row_ = r9;        // of the current height tap
  const Xbyak::Reg64 src_depth_ = r10, weights_depth_ = r11;  // of the current depth tap
  const Xbyak::Reg64 src_block_ = r12, weights_block_ = r13;  // of the current input block
  const Xbyak::Reg64 stride_ = r14,
                     stride3_ = r15;  // between output blocks of weights, and thrice that
  const Xbyak::Reg64 rows_left_ = rcx, taps_left_ = rbx, quads_left_ = rbp;
  const Xbyak::Reg64 depths_left_ = rax;
  // On the stack: input blocks left.
  static constexpr int kStackBytes = 16;

  // Vectors: the sums; the weights of each block (widened: their even and their odd bytes); the
  // rest.
  Xbyak::Xmm Sum(int block, int pixel) const { return Vector(block * pixels_ + pixel); }
  Xbyak::Xmm Weights(int block) const { return Vector(blocks_ * pixels_ + block); }
  Xbyak::Xmm OddWeights(int block) const { return Vector(blocks_ * (pixels_ + 1) + block); }
  Xbyak::Xmm Spare(int i) const {
    const int first = blocks_ * (pixels_ + (widened() ? 2 : 1));
    return Vector(first + i % std::max(1, config_.vector_registers - first));
  }
  Xbyak::Xmm Vector(int index) const { return VectorRegister(lanes_, index); }
  bool widened() const { return config_.dot == DotProduct::kWidened; }
  std::vector<int> FreeVectors() const {
    std::vector<int> free;
    for (int i = blocks_ * pixels_; i < config_.vector_registers; ++i) free.push_back(i);
    return free;
  }
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }

  void Emit() override {
    Preamble();
    sub(rsp, kStackBytes);
    for (int i = 0; i < blocks_ * pixels_; ++i) {
      lanes_ == 16 ? vpxord(Vector(i), Vector(i), Vector(i))
                   : vpxor(Vector(i), Vector(i), Vector(i));
    }
    mov(src_block_, Argument(offsetof(IntegerArgs, src)));
    mov(weights_block_, Argument(offsetof(IntegerArgs, weights)));
    if (blocks_ > 1) mov(stride_, config_.weights_oc_block);
    if (blocks_ > 3) lea(stride3_, ptr[stride_ + stride_ * 2]);
    if (config_.full_blocks) ReduceBlocks(config_.quads, offsetof(IntegerArgs, full_blocks));
    if (config_.tail_quads > 0)
      ReduceBlocks(config_.tail_quads, offsetof(IntegerArgs, tail_blocks));
    Finish();
    add(rsp, kStackBytes);
    Postamble();
    epilogue_.EmitTables();
  }

  // All input blocks that have `quads` quads; their number is the argument at `count_offset`.
  void ReduceBlocks(int quads, size_t count_offset) {
    Xbyak::Label loop, done;
    mov(rax, Argument(count_offset));
    test(rax, rax);
    jz(done, T_NEAR);
    mov(qword[rsp], rax);
    L(loop);
    ReduceDepth(quads);
    AddBytes(src_block_, config_.src_block);
    AddBytes(weights_block_, config_.weights_ic_block);
    dec(qword[rsp]);
    jnz(loop, T_NEAR);
    L(done);
  }

  void ReduceDepth(int quads) {
    if (config_.kernel[0] == 1) return ReduceRows(quads, src_block_, weights_block_);
    Xbyak::Label loop;
    mov(src_depth_, src_block_);
    mov(weights_depth_, weights_block_);
    mov(depths_left_, Argument(offsetof(IntegerArgs, depth_taps)));
    L(loop);
    ReduceRows(quads, src_depth_, weights_depth_);
    AddBytes(src_depth_, config_.src_tap[0]);
    AddBytes(weights_depth_, config_.kernel[1] * config_.kernel[2] * TapBytes());
    dec(depths_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceRows(int quads, const Xbyak::Reg64& src, const Xbyak::Reg64& weights) {
    if (config_.kernel[1] == 1) return ReduceTaps(quads, src, weights);
    Xbyak::Label loop;
    mov(src_row_, src);
    mov(weights_row_, weights);
    mov(rows_left_, Argument(offsetof(IntegerArgs, height_taps)));
    L(loop);
    ReduceTaps(quads, src_row_, weights_row_);
    AddBytes(src_row_, config_.src_tap[1]);
    AddBytes(weights_row_, config_.kernel[2] * TapBytes());
    dec(rows_left_);
    jnz(loop, T_NEAR);
  }

  void ReduceTaps(int quads, const Xbyak::Reg64& src, const Xbyak::Reg64& weights) {
    mov(src_, src);
    mov(weights_, weights);
    const int unroll = UnrolledQuads(quads);
    for (const TapRun& run : runs_) {
      Xbyak::Label loop;
      if (run.end_pixel == 0) {
        AddBytes(src_, run.taps * config_.src_tap[2]);
        AddBytes(weights_, run.taps * TapBytes());
        continue;
      }
      if (run.taps > 1) mov(taps_left_, run.taps);
      L(loop);
      ReduceTap(run, quads, unroll);
      if (run.taps == 1) continue;
      dec(taps_left_);
      jnz(loop, T_NEAR);
    }
  }

  // One tap for the quads of a block; then the pointers are at the next tap.
  void ReduceTap(const TapRun& run, int quads, int unroll) {
    Xbyak::Label loop;
    if (unroll < quads) mov(quads_left_, quads / unroll);
    L(loop);
    for (int quad = 0; quad < unroll; ++quad) ReduceQuad(run, quad);
    if (unroll == quads) {
      AddBytes(src_, config_.src_tap[2]);
      AddBytes(weights_, TapBytes());
      return;
    }
    AddBytes(src_, unroll * kQuadBytes);
    AddBytes(weights_, unroll * VectorBytes());
    dec(quads_left_);
    jnz(loop, T_NEAR);
    AddBytes(src_, config_.src_tap[2] - quads * kQuadBytes);
    AddBytes(weights_, TapBytes() - quads * VectorBytes());
  }

  void ReduceQuad(const TapRun& run, int quad) {
    for (int block = 0; block < blocks_; ++block) LoadWeights(block, quad);
    for (int pixel = run.first_pixel; pixel < run.end_pixel; ++pixel) {
      const auto src = ptr[src_ + static_cast<int>(pixel * config_.src_pixel + quad * kQuadBytes)];
      if (widened()) {
        AddWidened(pixel, src);
        continue;
      }
      const Xbyak::Xmm broadcast = Spare(pixel);
      vpbroadcastd(broadcast, src);
      for (int block = 0; block < blocks_; ++block)
        vpdpbusd(Sum(block, pixel), broadcast, Weights(block));
    }
  }

  void LoadWeights(int block, int quad) {
    const int64_t offset = quad * VectorBytes();
    vmovups(Weights(block), ptr[WeightsOf(block) + static_cast<int>(offset)]);
    if (offset % 64 == 0)
      prefetcht0(ptr[WeightsOf(block) + static_cast<int>(offset + kWeightsAhead)]);
    if (!widened()) return;
    SplitBytes(OddWeights(block), Weights(block), /*is_signed=*/true);
  }

  // A vector of bytes as 16-bit numbers: `even` becomes the bytes 0, 2, ..., `odd` those in
  // between.
  void SplitBytes(const Xbyak::Xmm& odd, const Xbyak::Xmm& even, bool is_signed) {
    is_signed ? vpsraw(odd, even, 8) : vpsrlw(odd, even, 8);
    vpsllw(even, even, 8);
    is_signed ? vpsraw(even, even, 8) : vpsrlw(even, even, 8);
  }

  void AddWidened(int pixel, const Xbyak::Address& src) {
    const Xbyak::Xmm even = Spare(0), odd = Spare(1), product = Spare(2);
    vpbroadcastd(even, src);
    SplitBytes(odd, even, config_.signed_src);
    for (int block = 0; block < blocks_; ++block) {
      vpmaddwd(product, even, Weights(block));
      vpaddd(Sum(block, pixel), Sum(block, pixel), product);
      vpmaddwd(product, odd, OddWeights(block));
      vpaddd(Sum(block, pixel), Sum(block, pixel), product);
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

  // The largest divisor of `quads` whose unrolled code stays small.
  int UnrolledQuads(int quads) const {
    int instructions = 0;
    for (const TapRun& run : runs_) {
      const int pixels = std::max(0, run.end_pixel - run.first_pixel);
      instructions += blocks_ + pixels * (blocks_ + 1);
    }
    if (widened()) instructions *= 4;
    int unroll = quads;
    while (unroll > 1 && (quads % unroll != 0 || unroll * instructions > kMaxUnrolledInstructions))
      --unroll;
    return unroll;
  }

  void Finish() {
    mov(src_, Argument(offsetof(IntegerArgs, dst)));
    if (config_.epilogue.bias) mov(weights_, Argument(offsetof(IntegerArgs, bias)));
    if (config_.epilogue.scales) mov(src_row_, Argument(offsetof(IntegerArgs, scales)));
    if (config_.epilogue.compensation)
      mov(weights_row_, Argument(offsetof(IntegerArgs, compensation)));
    epilogue_.FinishIntegers();
  }

  void AddBytes(const Xbyak::Reg64& to, int64_t bytes) {
    if (bytes != 0) add(to, static_cast<int>(bytes));
  }
  int64_t VectorBytes() const { return lanes_ * kQuadBytes; }
  int64_t TapBytes() const { return config_.quads * VectorBytes(); }

  const IntegerConfig config_;
  const int lanes_, blocks_, pixels_;
  const std::vector<TapRun> runs_;
  AccumulatorEpilogue epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateInteger(absl::string_view name,
                                                                      const IntegerConfig& config) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                        jit::Compile<IntegerGenerator>(name, config));
  return generator;
}

}  // namespace tilewire
