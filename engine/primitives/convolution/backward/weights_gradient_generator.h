// SPDX-License-Identifier: Apache-2.0
//
// Generates a tile of the gradient of weights: for some sources, each an input channel and a tap,
// and some vectors of output channels,
//
//   diff_weights[source][output] += sum over rows, pixels of
//                                   src[row, pixel][source] * diff_dst[row, pixel][output]
//
// Lanes are output channels; a source is broadcast from memory. The sum is a chain of fused
// multiply-adds that begins at zero, in the order of rows and pixels, and is then added to what
// diff_weights holds, or replaces it. The gradient of a bias is the tile of one source that is 1
// everywhere: its few sums would wait for each other, and so are some chains each, which take turns
// at the pixels.
// Depthwise, lanes are the channels of both sides, and sources are taps.
//
// Registers: the sums, vectors of diff_dst, and a source; 12 sums with 16 registers and 24 with 32
// read less than half a vector for each of their products. Sources beyond these have a loop of
// their own over rows and pixels, and all of it is repeated for blocks of src.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_

#include <cstdint>

#include "engine/base/range.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::convolution {

// Strides are in bytes.
struct WeightsGradientTile {
  VectorUnit unit;
  int blocks = 1;      // vectors of output channels
  int tail_lanes = 0;  // output channels of the last vector; 0: all of its lanes
  int64_t dst_block = 0, dst_pixel = 0, dst_row = 0;  // of diff_dst
  int64_t src_pixel = 0, src_row = 0;
  int64_t weights_block = 0;  // of diff_weights
  // Sources are rows of `sources_of_row`, the last of which may be shorter.
  int sources = 1, sources_of_row = 1;
  int64_t src_source = 0, src_source_row = 0;          // from one to the next, and from row to row
  int64_t weights_source = 0, weights_source_row = 0;  // the same of diff_weights
  int chains = 1;                                      // of a sum, added up in the end
  bool depthwise = false;
  bool fetches_ahead = false;
};

struct WeightsGradientArgs {
  const float *src, *diff_dst;  // of the first row, pixel and source
  float* diff_weights;
  jit::LoopCount rows, pixels;
  // Blocks of src, and bytes from one to the next.
  jit::LoopCount src_blocks = 1;
  int64_t src_block = 0, weights_src_block = 0;
  // Where the tile fetches ahead: bytes from what it reads to what later ones will. For each block
  // of src, dst_ahead grows by a step.
  int64_t src_ahead = 0, dst_ahead = 0, dst_ahead_step = 0;
  int64_t replaces = 0;  // 1: what diff_weights holds, which is not read, in all lanes
};

class WeightsGradientGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const WeightsGradientArgs*);
  static constexpr int kMostBlocks = 3;  // vectors of output channels of a tile
  // Sums that the registers hold beside what they are made of.
  static int MostSums(const VectorUnit& unit) { return unit.registers() >= 32 ? 24 : 12; }
  static constexpr int kChainsOfBias = 4;

  WeightsGradientGenerator(absl::string_view name, const WeightsGradientTile& tile)
      : Generator(name),
        tile_(tile),
        tail_(this, tile.unit, {.spare = rax, .opmask = k2, .vector = MostSums(tile.unit)}) {}

 private:
  void Emit() override;
  // Sources whose sums the registers hold together.
  struct Part {
    Range sources;
    bool is_first, is_last;
  };
  void EmitBlock();
  void EmitPart(const Part& part);
  void FetchWeights(const Range& sources);
  void EmitRows(const Part& part);
  void EmitPixels(const Part& part);
  void EmitPixel(const Range& sources, int pixel);
  void FetchAhead(const Part& part, int pixel);
  void EmitLastPixels(const Range& sources);
  void JoinChains(const Range& sources);
  void AddSums(const Range& sources);
  void PutSums(const Range& sources);

  int PixelsAtOnce() const { return tile_.chains > 1 ? tile_.chains : 2; }

  // Bytes from the first source to another.
  int SrcOffset(int64_t source) const;
  int WeightsOffset(int block, int64_t source) const;
  Xbyak::Xmm Sum(const Range& sources, int block, int64_t source, int chain = 0) const {
    const int64_t row = chain * tile_.blocks + block;
    return tile_.unit.Vector(static_cast<int>(row * sources.size + source - sources.begin));
  }
  Xbyak::Xmm Block(int block) const { return tile_.unit.Vector(MostSums(tile_.unit) + block); }
  Xbyak::Xmm Source() const { return Block(kMostBlocks); }

  const WeightsGradientTile tile_;
  const Xbyak::Reg64 args_ = rdi, src_row_ = r8, dst_row_ = r9, src_ = r10, dst_ = r11;
  const Xbyak::Reg64 rows_ = rdx, pixels_ = rcx, weights_ = rsi;
  const Xbyak::Reg64 src_ahead_ = rbx, dst_ahead_ = rbp, src_block_ = r12, src_blocks_ = r13;
  jit::TailMask tail_;  // after the sums, whose operands are no longer needed
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_
