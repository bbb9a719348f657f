// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_tiles.h"

#include <array>

namespace tilewire {
namespace {

// Palette 1, and the bytes of a row and the rows of each tile.
struct alignas(64) TileConfiguration {
  std::array<uint8_t, 16> palette{1};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 1};
};
static_assert(sizeof(TileConfiguration) == 64);
constexpr TileConfiguration kWholeTiles;

}  // namespace

void EndMatrixTile(MatrixTiles* tiles) {
  if (tiles->parts != nullptr) tiles->finish(tiles);
  tiles->parts = nullptr;
}

void FinishMatrixTiles(MatrixTiles* tiles) {
  EndMatrixTile(tiles);
  ReleaseMatrixTiles();
}

const void* WholeTiles() { return &kWholeTiles; }

void ReleaseMatrixTiles() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace tilewire
