// SPDX-License-Identifier: Apache-2.0
//
// The matrix tiles (AMX) of this thread, and what the calls of a piece of work on them hand on to
// each other.
//
// A call leaves the sums of its tile in memory. Their end, which makes dst of them, is due until
// the next call runs it, in parts between its own products (matrix_plan.h), or EndMatrixTile() or
// FinishMatrixTiles() alone: what it reads and dst have to stay until then. One place in memory is
// enough for sums, as those of the next tile stay in the tiles until all parts have run. Tiles that
// follow each other may be of different shapes, but have as many steps. A call configures the tiles
// where they are configured otherwise. Between the first call of a piece of work and
// FinishMatrixTiles() nothing else may use tiles, and no other task may run.
#ifndef ENGINE_KERNELS_TILES_MATRIX_TILES_H_
#define ENGINE_KERNELS_TILES_MATRIX_TILES_H_

#include <cstddef>
#include <cstdint>

namespace tilewire {

inline constexpr int kMatrixPixels = 32, kMatrixBlocks = 2;
inline constexpr int kMatrixRows = 16;       // of a tile: half of the pixels
inline constexpr int kMatrixLineBytes = 64;  // of a row of a tile
inline constexpr int kMatrixSumsBytes = kMatrixBlocks * kMatrixPixels * kMatrixLineBytes;

// The first call of a piece of work gets one with nothing due.
struct MatrixTiles {
  const void* configuration = nullptr;     // that the tiles have
  const void* parts = nullptr;             // of the end that is due, if one is: tile_end_parts.h
  void (*finish)(MatrixTiles*) = nullptr;  // runs them all
  std::byte* dst = nullptr;
  const std::byte* bias = nullptr;  // or the compensation of pixels
  const float* scales = nullptr;
  const int32_t* compensation = nullptr;
  const int32_t* places = nullptr;               // see IntegerTileArgs
  alignas(64) std::byte sums[kMatrixSumsBytes];  // [block][pixel], of the end that is due
};

// Runs the end that is due, if one is.
void EndMatrixTile(MatrixTiles* tiles);

// The same, and releases the tiles. Only on a CPU with tiles.
void FinishMatrixTiles(MatrixTiles* tiles);

// The operand of ldtilecfg that gives tiles 16 rows of 64 bytes, and the last one a single row, all
// filled with zeros: 64 bytes that stay where they are.
const void* WholeTiles();

// Returns this thread's tiles to their initial state: until then every switch between threads saves
// them, and the core sleeps less deeply. Only on a CPU with tiles.
void ReleaseMatrixTiles();

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_MATRIX_TILES_H_
