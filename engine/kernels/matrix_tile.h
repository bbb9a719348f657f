// SPDX-License-Identifier: Apache-2.0
//
// Generates the same function as integer_tile.h on matrix tiles (AMX): up to 32 neighbouring
// outputs of one row times up to 2 vectors of 16 output channels. A step of the reduction is 64
// input channels, one row of a tile per pixel:
//
//   tile 2 * block + half   the sums: `half` is the first or second 16 pixels
//   tiles 4, 5              src of 16 pixels; the second only if it has fewer rows than the first
//   tile 6                  weights: 16 quads of input channels times 16 output channels
//
// With 2 blocks and 32 pixels a step is five loads and four products; each reads one tile that the
// one before it has read. Six tiles are in use, as the core's other hardware thread needs some of
// the physical ones: with all eight, products take twice as long beside a busy one.
//
// A call leaves the sums of its tile in memory. Their end, which makes dst of them, is due until
// the next call runs it, in parts between its own products (matrix_plan.h), or FinishMatrixTiles()
// alone: dst, bias, scales and compensation have to stay until then. One place in memory is enough
// for sums, as those of the next tile stay in the tiles until all parts have run. Tiles that follow
// each other may be of different shapes, but have as many steps. A call configures the tiles where
// they are configured otherwise. Between the first call of a piece of work and FinishMatrixTiles()
// nothing else may use tiles, and no other task may run.
//
// Nothing is read beyond the 64 bytes of each pixel's step.
#ifndef ENGINE_KERNELS_MATRIX_TILE_H_
#define ENGINE_KERNELS_MATRIX_TILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/integer_tile.h"

namespace tilewire {

inline constexpr int64_t kMatrixStepBytes = 64;  // of a pixel: a row of a tile
inline constexpr int kMatrixPixels = 32, kMatrixBlocks = 2;
inline constexpr int64_t kMatrixWeightsBytes = 1024;  // of a step and 16 output channels
inline constexpr int kMatrixSumsBytes = kMatrixBlocks * kMatrixPixels * 64;

// What the calls of a piece of work hand on to each other, the first one with nothing due.
struct MatrixTiles {
  const void* configuration = nullptr;     // that the tiles have
  const void* parts = nullptr;             // of the end that is due, if one is: ended_parts.h
  void (*finish)(MatrixTiles*) = nullptr;  // runs them all
  std::byte* dst = nullptr;
  const std::byte* bias = nullptr;  // or the compensation of pixels
  const float* scales = nullptr;
  const int32_t* compensation = nullptr;
  alignas(64) std::byte sums[kMatrixSumsBytes];  // that it begins with
};

// The loops of `config` count steps: a channel is kMatrixStepBytes of src and kMatrixWeightsBytes
// of weights, an input block is one of them, and every tap lies inside src for every pixel. Weights
// of a block of outputs lie in the order of the steps. The unit has 16 lanes. A tile has a bias or
// a compensation of pixels, not both.
//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateMatrixTile(
    absl::string_view name, const IntegerTileConfig& config);

// Runs the end that is due and releases the tiles. Only on a CPU with tiles.
void FinishMatrixTiles(MatrixTiles* tiles);

// Gives all tiles of this thread 16 rows of 64 bytes, filled with zeros. Only on a CPU with tiles.
void ConfigureWholeTiles();

// Returns this thread's tiles to their initial state: until then every switch between threads saves
// them, and the core sleeps less deeply. Only on a CPU with tiles.
void ReleaseMatrixTiles();

}  // namespace tilewire

#endif  // ENGINE_KERNELS_MATRIX_TILE_H_
