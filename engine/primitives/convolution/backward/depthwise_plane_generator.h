// SPDX-License-Identifier: Apache-2.0
//
// Generates the gradients of the weights and bias of a depthwise convolution for a vector of
// channels of one image, and for as many rows of taps as registers hold the sums of:
//
//   diff_weights[tap] += sum over the outputs that the tap reaches of src * diff_dst
//   diff_bias         += sum over all outputs of diff_dst
//
// Rows of outputs are cut into tiles of pixels, whose diff_dst stays in registers while the columns
// of src below them pass: a pixel of src is loaded once for all taps that read it. Which taps of a
// row read which columns is known while generating, whatever strides and dilations are. A sum is a
// chain that begins at zero, in row-major order of the outputs, and is added to what is there.
//
// The pixels of some rows below, or of the plane after this one, are fetched meanwhile.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/backward/column_tile.h"

namespace tilewire::convolution {

// Neighbouring outputs along a dimension, and the taps that lie inside src for each of them.
struct OutputSegment {
  TapRange outputs, taps;
};

// Strides are in bytes.
struct DepthwisePlane {
  VectorUnit unit;
  TapRange tap_rows{0, 1};                              // whose sums are made
  std::vector<OutputSegment> rows;                      // all rows, in order; taps in tap_rows
  int64_t src_pixels = 0, dst_pixels = 0;               // of a row
  int64_t taps = 1, stride = 1, tap_step = 1, pad = 0;  // along a row
  int64_t row_stride = 1;                               // rows of src from output to output
  int64_t src_pixel = 0, src_row = 0, src_tap_row = 0;
  int64_t dst_pixel = 0, dst_row = 0;
  int64_t weights_tap = 0, weights_tap_row = 0;
  bool has_bias = false;
  int tail_lanes = 0;  // channels of diff_bias; 0: all lanes
  bool fetches_ahead = false;
};

struct DepthwisePlaneArgs {
  // Bytes from what is read to what is fetched for later.
  struct Ahead {
    int64_t src = 0, diff_dst = 0;
  };
  const float* src;  // where row 0 of taps reads column 0 for output row 0, be it outside src
  const float* diff_dst;
  float *diff_weights, *diff_bias;
  Ahead ahead, next_ahead;   // the latter after some rows
  int64_t rows_to_next = 0;  // at least 1, where the plane fetches ahead
};

class DepthwisePlaneGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const DepthwisePlaneArgs*);
  static constexpr int64_t kMostPixels = 8;  // of a tile
  // Rows of so many taps whose sums the registers hold beside what they are made of; may be 0.
  static int64_t MostTapRows(const VectorUnit& unit, int64_t taps);

  DepthwisePlaneGenerator(absl::string_view name, const DepthwisePlane& plane);

 private:
  // Columns are of src, from the one below the tile's first output at no padding; pixels are
  // outputs.
  using Product = ColumnProduct;
  using Tile = ColumnTile;

  Tile TileAt(int64_t first, int64_t pixels) const;

  void Emit() override;
  void LoadArguments();
  void EmitRow(const TapRange& tap_rows);
  void EmitTiles(const TapRange& tap_rows, const Tile& tile);
  void EmitTile(const TapRange& tap_rows, const Tile& tile);
  void EmitColumn(const TapRange& tap_rows, absl::Span<const Product> products);
  void FetchAhead(int pixels);
  void TurnToNext();
  void AddSums();

  int Sums() const {
    return static_cast<int>((plane_.tap_rows.end - plane_.tap_rows.begin) * plane_.taps);
  }
  Xbyak::Xmm Sum(int64_t row, int64_t tap) const {
    return plane_.unit.Vector(static_cast<int>((row - plane_.tap_rows.begin) * plane_.taps + tap));
  }
  Xbyak::Xmm BiasSum() const { return plane_.unit.Vector(Sums()); }
  Xbyak::Xmm Source() const { return plane_.unit.Vector(Sums() + 1); }
  Xbyak::Xmm Dst(int pixel) const { return plane_.unit.Vector(Sums() + 2 + pixel); }

  const DepthwisePlane plane_;
  const std::vector<Tile> tiles_;
  const Xbyak::Reg64 args_ = rdi, src_row_ = rsi, dst_row_ = rdx, src_ = rcx, dst_ = r8;
  const Xbyak::Reg64 rows_ = r9, turns_ = r10, to_ = r11, src_ahead_ = rbx, dst_ahead_ = rbp;
  const Xbyak::Reg64 to_next_ = r12;
  jit::TailMask tail_;  // its vector after the tiles, which diff_dst no longer needs
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_PLANE_GENERATOR_H_
