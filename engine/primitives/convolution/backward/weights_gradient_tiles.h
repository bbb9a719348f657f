// SPDX-License-Identifier: Apache-2.0
//
// The tiles of weights_gradient_generator.h that a gradient of weights needs, and how they are
// called. A tile has one tap and the input channels of a block. Where there are one to three of
// these, as in first layers, it has several neighbouring taps of a row, too, so that its sums fill
// the registers.
//
// Immutable once compiled; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_TILES_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_TILES_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/primitives/convolution/backward/weights_gradient_bands.h"
#include "engine/primitives/convolution/backward/weights_gradient_generator.h"
#include "engine/primitives/convolution/backward/weights_gradient_problem.h"

namespace tilewire::convolution {

class WeightsGradientTiles {
 public:
  // The operands of a call. `ahead`: elements from there to what is fetched for later.
  struct Call {
    const float *src, *diff_dst;  // of the first row, pixel, channel and tap
    float* diff_weights;
    int blocks;  // of output channels
    bool tail;   // the last of them is not full
    int64_t rows, pixels;
    WeightsGradientBands::Distance ahead;
    int64_t src_blocks = 1, dst_ahead_step = 0;  // from one block of src to the next, in elements
    bool replaces = false;  // what diff_weights holds: of one tap, where channels fill their blocks
  };

  explicit WeightsGradientTiles(const WeightsGradientProblem& problem) : problem_(problem) {}

  // Vectors of output channels of a tile, and taps of a row, at most.
  int MostBlocks() const;
  int TapsAtOnce() const;

  // The tiles for `channels` of a block of src, and `blocks` of output channels.
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  absl::Status Compile(absl::string_view name, int blocks, bool tail, int64_t channels);

  // Channels of one tap, of one or several blocks of src; all channels of TapsAtOnce() taps, or
  // fewer at the end of a row; and the gradient of the bias, whose src is not read.
  void RunTap(const Call& call, int64_t channels) const;
  void RunTaps(const Call& call, int taps) const;
  void RunBias(const Call& call) const;

  int64_t code_bytes() const;

 private:
  using Tile = std::unique_ptr<const jit::Generator>;
  using Tails = std::array<Tile, 2>;  // whether the last block has a tail
  static constexpr int kMostChannels = 16, kMostTaps = 12;

  WeightsGradientTile ConfigOf(int blocks, bool tail) const;
  WeightsGradientTile ConfigOfTaps(int blocks, bool tail) const;
  absl::Status CompileTap(absl::string_view name, int blocks, bool tail, int channels);
  absl::Status CompileTaps(absl::string_view name, int blocks, bool tail, int taps);
  absl::Status CompileBias(absl::string_view name, int blocks, bool tail);

  WeightsGradientProblem problem_;
  // By blocks - 1, and channels - 1 or taps - 1.
  std::array<std::array<Tails, kMostChannels>, WeightsGradientGenerator::kMostBlocks> taps_;
  std::array<std::array<Tails, kMostTaps>, WeightsGradientGenerator::kMostBlocks> rows_of_taps_;
  std::array<Tails, WeightsGradientGenerator::kMostBlocks> biases_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_TILES_H_
