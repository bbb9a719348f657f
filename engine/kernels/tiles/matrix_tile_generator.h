// SPDX-License-Identifier: Apache-2.0
//
// Generates the function of a matrix tile (AMX), of integers (matrix_tile.h) or of planes of bf16
// (plane_tile.h): up to 32 pixels times up to 2 vectors of 16 outputs. A step of the reduction is a
// row of a tile, 64 bytes, per pixel and plane:
//
//   tile 2 * block + half   the sums: `half` is the first or second 16 pixels
//   tiles 4, 5              src of 16 pixels; the second only if it has fewer rows than the first,
//                           or if both stay loaded
//   tile 6                  weights of 16 outputs
//   tile 7                  one row of zeros, which is stored from time to time
//
// The unit that stores tiles falls asleep after about 600 ns without a store. The next store then
// takes 250 ns, in which nothing retires (measured, tests/bench/figures/convolution.md). Long tiles
// store an unused row often enough to keep it awake.
//
// With 2 blocks and 32 pixels a step of one plane is five loads and four products; each reads one
// tile that the one before it has read. Six tiles hold numbers, as the core's other hardware thread
// needs some of the physical ones: with all eight, products take twice as long beside a busy one.
// Tile 7, which is never written, needs none.
//
// Calls hand their ends on to each other: see matrix_tiles.h.
#ifndef ENGINE_KERNELS_TILES_MATRIX_TILE_GENERATOR_H_
#define ENGINE_KERNELS_TILES_MATRIX_TILE_GENERATOR_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/matrix_plan.h"
#include "engine/kernels/tiles/matrix_tiles.h"
#include "engine/kernels/tiles/tile_end_parts.h"

namespace tilewire {

enum class MatrixNumbers { kUnsignedBytes, kSignedBytes, kBf16 };  // of src

// Distances are bytes. The unit of the epilogue has 16 lanes.
struct MatrixTileConfig {
  EpilogueConfig epilogue;
  MatrixNumbers numbers = MatrixNumbers::kUnsignedBytes;
  int planes = 1;
  std::vector<int64_t> steps = {};  // where they begin in src, from a tile's first pixel
  int64_t src_pixel = 0, src_plane = 0;
  int64_t weights_step = 0, weights_plane = 0, weights_block = 0;
  // Rows of src begin inside lines of the cache, which takes several times as long to load: both
  // halves stay loaded, in tiles 4 and 5.
  bool keeps_src = false;
  // 16 pixels of src may be read where a tile has fewer: then all tiles have 16 rows.
  bool reads_whole_tiles = false;
  TileEndParts::Pixels pixels = TileEndParts::Pixels::kInRuns;
  std::vector<PixelRun> runs = {};  // what is stored, if that is not all pixels side by side
};

// Its function is an IntegerTileFunction; the arguments of integers alone are not read for bf16.
class MatrixTileGenerator final : public jit::Generator {
 public:
  MatrixTileGenerator(absl::string_view name, const MatrixTileConfig& config);

 private:
  void Emit() override;
  void Configure();
  void ZeroSums();
  void MultiplyBesideEnd();
  void MultiplyAlone();
  void KeepStoresAwake();
  void Multiply(const MatrixProduct& product, const Xbyak::RegExp& step, int64_t weights_bytes);
  void LeaveSums();
  void EmitTables();
  void EmitConfiguration();

  bool HasWholeTiles() const;  // 16 rows each
  bool IsEven() const;         // whether steps are equally far apart
  int StepsWithEnd() const;
  Xbyak::Tmm SumTile(int block, int half) const { return Xbyak::Tmm(2 * block + half); }
  Xbyak::Tmm SourceTile(int half) const;
  bool LoadsSource(const MatrixProduct& product) const;
  Xbyak::Address Argument(size_t offset) { return qword[args_ + static_cast<int>(offset)]; }
  Xbyak::Address Tiles(size_t offset) { return qword[tiles_ + static_cast<int>(offset)]; }

  // TileEndParts holds the others between the first product and the last.
  const Xbyak::Reg64 args_ = rdi, tiles_ = r11;  // before the first and after the last
  const Xbyak::Reg64 src_ = rsi, weights_ = rdx, src_row_bytes_ = rcx, line_bytes_ = r8;
  const Xbyak::Reg64 step_ = r11;  // src of the current one
  const Xbyak::Reg64 steps_left_ = r9, next_step_ = r10, spare_ = rax;

  const MatrixTileConfig config_;
  const std::array<int, 2> rows_;              // of the halves
  const std::vector<MatrixProduct> products_;  // of a step
  TileEndParts end_;
  Xbyak::Label configuration_, offsets_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_MATRIX_TILE_GENERATOR_H_
