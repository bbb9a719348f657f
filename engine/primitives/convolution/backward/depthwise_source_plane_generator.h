// SPDX-License-Identifier: Apache-2.0
//
// Generates the gradient of src of a depthwise convolution for a vector of channels of one image:
//
//   diff_src[y][x] = sum over the taps (k, l) whose windows hold it of
//                    diff_dst[(y + pad - k * step) / stride][(x + pad - l * step) / stride] *
//                    weights[k][l]
//
// Rows of diff_src are cut into tiles of pixels, whose sums stay in registers while one row of taps
// after the other passes, each with the row of diff_dst that it reaches: a pixel of diff_dst is
// loaded once for all pixels of the tile that read it. Which taps of a row reach which pixels is
// known while generating, whatever strides and dilations are; which rows of taps, from a table. A
// sum is a chain that begins at zero, in row-major order of diff_dst.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_PLANE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_PLANE_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/backward/column_tile.h"

namespace tilewire::convolution {

// A row of diff_src: the distances in bytes to the first row of diff_dst that a row of taps reaches
// from it, and to that row of taps; how many rows of taps there are.
struct SourceRow {
  int64_t diff_dst = 0, weights = 0, tap_rows = 0;
};

// Strides are in bytes.
struct DepthwiseSourcePlane {
  VectorUnit unit;
  int64_t src_pixels = 0, dst_pixels = 0;  // of a row
  int64_t taps = 1, stride = 1, tap_step = 1, pad = 0;
  int64_t src_pixel = 0, src_row = 0, dst_pixel = 0, weights_tap = 0;
  int64_t next_dst_row = 0, next_tap_row = 0;  // from one row of taps to the next
  bool adds = false;                           // to what diff_src holds
};

struct DepthwiseSourcePlaneArgs {
  const float *diff_dst, *weights;
  float* diff_src;
  const SourceRow* rows;
  jit::LoopCount count;  // of rows
};

class DepthwiseSourcePlaneGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const DepthwiseSourcePlaneArgs*);
  // Whether the registers hold a row of so many taps, and the sums of enough pixels.
  static bool Holds(const VectorUnit& unit, int64_t taps, int64_t stride);

  DepthwiseSourcePlaneGenerator(absl::string_view name, const DepthwiseSourcePlane& plane);

 private:
  // Columns are of diff_dst, pixels of diff_src.
  using Product = ColumnProduct;
  using Tile = ColumnTile;

  Tile TileAt(int64_t first, int64_t pixels) const;

  void Emit() override;
  void EmitTiles(const Tile& tile);
  void EmitTile(const Tile& tile);
  void EmitTapRow(const Tile& tile);

  Xbyak::Xmm Sum(int pixel) const { return plane_.unit.Vector(pixel); }
  Xbyak::Xmm Tap(int64_t tap) const {
    return plane_.unit.Vector(plane_.unit.registers() - 1 - static_cast<int>(tap));
  }
  Xbyak::Xmm Pixel(int64_t column) const;

  const DepthwiseSourcePlane plane_;
  const std::vector<Tile> tiles_;
  int most_pixels_ = 0;  // of the tiles

  const Xbyak::Reg64 args_ = rdi, rows_ = rsi, count_ = rdx, src_row_ = rcx, src_ = r8;
  const Xbyak::Reg64 diff_dst_ = r9, weights_ = r10, dst_ = r11, taps_ = rbx, tap_rows_ = rbp;
  const Xbyak::Reg64 turns_ = r12, at_dst_ = r13, at_taps_ = r14, left_ = r15;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_PLANE_GENERATOR_H_
