// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/integer_tile.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/cache_line.h"

namespace tilewire {
namespace {

// Weights stream from the second cache: each line is prefetched this many bytes ahead.
constexpr int64_t kWeightsAhead = 1024;

class IntegerTileGenerator final : public TapLoopGenerator {
 public:
  IntegerTileGenerator(absl::string_view name, const IntegerTileConfig& config)
      : TapLoopGenerator(name, config.epilogue, config.loops, offsetof(IntegerTileArgs, loops)),
        config_(config),
        registers_{.dst = src_,
                   .bias = weights_,
                   .spare = rax,
                   .scratch = FreeVectors(),
                   .scales = src_row_,
                   .compensation = weights_row_,
                   .pixel_compensation = src_block_},
        epilogue_(this, config.epilogue, registers_) {}

 private:
  // Vectors: the sums; the weights of each block (widened: their even and their odd
  // bytes); the rest, of which pairs have a one in each 16 bits of the first.
  Xbyak::Xmm OddWeights(int block) const { return Vector(blocks_ * (pixels_ + 1) + block); }
  Xbyak::Xmm Spare(int i) const {
    const int first = blocks_ * (pixels_ + (widened() ? 2 : 1));
    return Vector(first + i % std::max(1, unit_.registers() - first));
  }
  // Without rows of taps r8 is free: it points to the bytes of the next tile to prefetch.
  const Xbyak::Reg64 next_tile_ = r8;
  bool widened() const { return config_.products == ByteProducts::kWidened; }
  bool paired() const { return config_.products == ByteProducts::kPairs; }

  void Emit() override {
    Preamble();
    ReserveStack();
    ZeroSums();
    if (paired()) unit_.BroadcastBits(this, Spare(0), 0x00010001, rax);
    LoadPointers(offsetof(IntegerTileArgs, src), offsetof(IntegerTileArgs, weights));
    if (config_.fetches_next) {
      mov(next_tile_, Argument(offsetof(IntegerTileArgs, src)));
      add(next_tile_, static_cast<int>(pixels_ * loops_.src_pixel));
    }
    ReduceBlocks();
    LoadEpilogueArguments(this, config_.epilogue, registers_);
    epilogue_.FinishIntegers();
    ReleaseStack();
    Postamble();
    epilogue_.EmitTables();
  }

  int InstructionsOfChannel(int pixels) const override {
    const int of_block = paired() ? 3 : 1;
    return (blocks_ + pixels * (of_block * blocks_ + 1)) * (widened() ? 4 : 1);
  }

  void ReduceChannel(const TapRun& run, int quad) override {
    for (int block = 0; block < blocks_; ++block) LoadWeights(block, quad);
    FetchNextTile();
    FetchWeightsAhead(quad);
    for (int pixel = run.first_pixel; pixel < run.end_pixel; ++pixel) {
      const auto src = ptr[src_ + static_cast<int>(pixel * loops_.src_pixel + quad * kQuad)];
      if (widened()) {
        AddWidened(pixel, src);
        continue;
      }
      if (paired()) {
        AddPairs(pixel, src);
        continue;
      }
      const Xbyak::Xmm broadcast = Spare(pixel);
      vpbroadcastd(broadcast, src);
      for (int block = 0; block < blocks_; ++block) {
        unit_.AddDotProducts(this, Sum(block, pixel), broadcast, Weights(block));
      }
    }
  }

  // The next tile's pixels are too many streams for the core to prefetch by itself. With at most a
  // line per quad all of up to 16 pixels have arrived when this tile ends.
  void FetchNextTile() {
    if (!config_.fetches_next) return;
    prefetcht0(ptr[next_tile_]);
    AddBytes(next_tile_, std::min<int64_t>(kLineBytes, pixels_ * kQuad));
  }

  void LoadWeights(int block, int quad) {
    const int64_t offset = quad * VectorBytes();
    vmovups(Weights(block), ptr[WeightsOf(block) + static_cast<int>(offset)]);
    if (offset % kLineBytes == 0)
      prefetcht0(ptr[WeightsOf(block) + static_cast<int>(offset + kWeightsAhead)]);
    if (!widened()) return;
    SplitBytes(OddWeights(block), Weights(block), /*is_signed=*/true);
  }

  // Splits a vector of bytes into 16-bit numbers: `even` becomes bytes 0, 2, ..., `odd` bytes 1,
  // 3, ...
  void SplitBytes(const Xbyak::Xmm& odd, const Xbyak::Xmm& even, bool is_signed) {
    is_signed ? vpsraw(odd, even, 8) : vpsrlw(odd, even, 8);
    vpsllw(even, even, 8);
    is_signed ? vpsraw(even, even, 8) : vpsrlw(even, even, 8);
  }

  void AddPairs(int pixel, const Xbyak::Address& src) {
    const Xbyak::Xmm ones = Spare(0), product = Spare(1), broadcast = Spare(2);
    vpbroadcastd(broadcast, src);
    for (int block = 0; block < blocks_; ++block) {
      vpmaddubsw(product, broadcast, Weights(block));
      vpmaddwd(product, product, ones);
      vpaddd(Sum(block, pixel), Sum(block, pixel), product);
    }
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

  const IntegerTileConfig config_;
  const AccumulatorEpilogue::Registers registers_;  // after the reduction
  AccumulatorEpilogue epilogue_;
};

}  // namespace

void LoadEpilogueArguments(Xbyak::CodeGenerator* g, const EpilogueConfig& epilogue,
                           const AccumulatorEpilogue::Registers& to) {
  const auto argument = [g](size_t offset) { return g->qword[g->rdi + static_cast<int>(offset)]; };
  g->mov(to.dst, argument(offsetof(IntegerTileArgs, dst)));
  if (epilogue.bias) g->mov(to.bias, argument(offsetof(IntegerTileArgs, bias)));
  if (epilogue.scales) g->mov(to.scales, argument(offsetof(IntegerTileArgs, scales)));
  if (epilogue.compensation)
    g->mov(to.compensation, argument(offsetof(IntegerTileArgs, compensation)));
  if (epilogue.pixel_compensation)
    g->mov(to.pixel_compensation, argument(offsetof(IntegerTileArgs, pixel_compensation)));
}

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateIntegerTile(
    absl::string_view name, const IntegerTileConfig& config) {
  return jit::Compile<IntegerTileGenerator>(name, config);
}

}  // namespace tilewire
