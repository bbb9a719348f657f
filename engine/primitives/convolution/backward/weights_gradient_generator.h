// SPDX-License-Identifier: Apache-2.0
//
// Generates a tile of the gradient of weights: for one tap, some input channels and some vectors of
// output channels,
//
//   diff_weights[channel][output] += sum over rows, pixels of
//                                    src[row, pixel][channel] * diff_dst[row, pixel][output]
//
// Lanes are output channels; an input channel is broadcast from memory. The sum is a chain of fused
// multiply-adds that begins at zero, in the order of rows and pixels, and is then added to what
// diff_weights holds. The gradient of a bias is the tile of one channel that is 1 everywhere.
// Depthwise, lanes are the channels of both sides, and several taps take the place of channels.
//
// Registers: the sums, vectors of diff_dst, and a channel of src; 12 sums with 16 registers and 24
// with 32 read less than half a vector for each of their products.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_

#include <cstdint>

#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::convolution {

// Strides are in bytes.
struct WeightsGradientTile {
  VectorUnit unit;
  int blocks = 1, channels = 1;  // vectors of output channels; input channels
  int tail_lanes = 0;            // output channels of the last vector; 0: all of its lanes
  int64_t src_channel = 0, src_pixel = 0, src_row = 0;
  int64_t dst_block = 0, dst_pixel = 0, dst_row = 0;  // of diff_dst
  int64_t weights_block = 0, weights_channel = 0;     // of diff_weights
  // Depthwise: `channels` counts taps, of which a row has so many.
  bool depthwise = false;
  int taps_of_row = 1;
  int64_t src_tap_row = 0, weights_tap_row = 0;  // from row to row of taps
};

struct WeightsGradientArgs {
  const float *src, *diff_dst;  // of the first row, pixel and channel
  float* diff_weights;
  jit::LoopCount rows, pixels;
};

class WeightsGradientGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const WeightsGradientArgs*);
  // Vectors of output channels of a tile, at most; and its input channels where it has `blocks`.
  static constexpr int kMostBlocks = 3;
  static int MostChannels(const VectorUnit& unit, int blocks);

  WeightsGradientGenerator(absl::string_view name, const WeightsGradientTile& tile)
      : Generator(name),
        tile_(tile),
        tail_(this, tile.unit, {.spare = rax, .opmask = k2, .vector = Sums()}) {}

 private:
  void Emit() override;
  void EmitRows();
  void EmitPixel();
  void AddSums();

  // Bytes from the first channel or tap to another.
  int SrcOffset(int channel) const;
  int WeightsOffset(int block, int channel) const;
  int Sums() const { return tile_.blocks * tile_.channels; }
  Xbyak::Xmm Sum(int block, int channel) const {
    return tile_.unit.Vector(block * tile_.channels + channel);
  }
  Xbyak::Xmm Block(int block) const { return tile_.unit.Vector(Sums() + block); }
  Xbyak::Xmm Channel() const { return tile_.unit.Vector(Sums() + tile_.blocks); }

  const WeightsGradientTile tile_;
  const Xbyak::Reg64 args_ = rdi, src_row_ = r8, dst_row_ = r9, src_ = r10, dst_ = r11;
  const Xbyak::Reg64 rows_ = rdx, pixels_ = rcx, weights_ = rsi;
  jit::TailMask tail_;  // after the sums, whose operands are no longer needed
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_GENERATOR_H_
