// SPDX-License-Identifier: Apache-2.0
//
// Generates the gradient of a maximum over windows of a plane, for 16 neighbouring channels of an
// image:
//
//   diff_src[y][x] = sum of diff_dst[h][w] over the windows that hold the pixel and whose saved
//                    place is its number in them, (y + pad - h * stride) * kernel + x + pad - ...
//
// Rows of diff_src are cut into tiles of pixels, whose sums stay in registers while one row of
// windows after the other passes: a window is loaded once for all its pixels in the tile. Which
// windows of a row hold which pixels is known while generating; which rows of windows, from a
// table. Sums are in double, from zero on and in the order of windows, and rounded once: bits are
// those of the reference.
//
// Needs AVX-512. Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_PRIMITIVES_POOLING_MAXIMUM_GRADIENT_GENERATOR_H_
#define ENGINE_PRIMITIVES_POOLING_MAXIMUM_GRADIENT_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/pooling/axis.h"

namespace tilewire::pooling {

// The rows of windows that hold a row of pixels: elements from the first of a plane to the first
// row, how many there are, and the number of the row's first pixel in a window of the first row.
struct WindowRows {
  int64_t diff_dst = 0, count = 0, place = 0;
};

// Strides of the axes are in elements; that of windows in pixels of src is at most kMostPixels.
struct MaximumGradientPlane {
  Axis rows, columns;
  bool streams = false;  // writes past the caches: pixels of diff_src are lines
};

struct MaximumGradientArgs {
  const float* diff_dst;
  const uint8_t* places;
  float* diff_src;
  const WindowRows* rows;
  jit::LoopCount count;  // of rows
};

class MaximumGradientGenerator final : public jit::Generator {
 public:
  static constexpr int kLanes = 16;
  static constexpr int64_t kMostPixels = 12;  // of a tile: their sums take two registers each
  using Function = void (*)(const MaximumGradientArgs*);

  MaximumGradientGenerator(absl::string_view name, const MaximumGradientPlane& plane);

 private:
  // A window, counted from the tile's first one, and the pixel that is its tap.
  struct Hold {
    int64_t window, tap;
    int pixel;
    bool operator==(const Hold&) const = default;
  };
  // Neighbouring pixels of diff_src, and as many tiles like it as follow each other.
  struct Tile {
    int pixels = 0;
    std::vector<Hold> holds;  // by windows
    int64_t count = 1;
    bool IsLike(const Tile& other) const { return pixels == other.pixels && holds == other.holds; }
  };

  Tile TileAt(int64_t first, int64_t pixels) const;

  void Emit() override;
  void EmitTiles(const Tile& tile);
  void EmitTile(const Tile& tile);
  void EmitWindows(const Tile& tile);
  void LoadWindow(int64_t window, int set);
  void EmitStores(const Tile& tile);
  void EmitTaps();

  Xbyak::Zmm Sum(int pixel, int half) const { return Xbyak::Zmm(2 * pixel + half); }
  Xbyak::Zmm Gradient(int set, int half) const { return Xbyak::Zmm(24 + 2 * set + half); }
  Xbyak::Xmm Places(int set) const { return Xbyak::Xmm(28 + set); }

  const MaximumGradientPlane plane_;
  const std::vector<Tile> tiles_;
  Xbyak::Label taps_;

  const Xbyak::Reg64 args_ = rdi, rows_ = rsi, count_ = rdx, src_row_ = rcx, src_ = r8;
  const Xbyak::Reg64 diff_dst_ = r9, places_ = r10, column_ = r11, at_ = rbx, place_ = rbp;
  const Xbyak::Reg64 turns_ = r12, left_ = r13, at_dst_ = r14, at_places_ = r15;
  const Xbyak::Xmm first_place_{30};  // in all bytes
};

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_MAXIMUM_GRADIENT_GENERATOR_H_
