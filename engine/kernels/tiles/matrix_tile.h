// SPDX-License-Identifier: Apache-2.0
//
// Generates the same function as integer_tile.h on matrix tiles (AMX, matrix_tile_generator.h): up
// to 32 neighbouring outputs of one row times up to 2 vectors of 16 output channels. A step of the
// reduction is 64 input channels; the weights of a step and 16 outputs are 16 quads of input
// channels times 16 output channels.
//
// Nothing is read beyond the 64 bytes of each pixel's step.
#ifndef ENGINE_KERNELS_TILES_MATRIX_TILE_H_
#define ENGINE_KERNELS_TILES_MATRIX_TILE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/kernels/tiles/matrix_tiles.h"

namespace tilewire {

inline constexpr int64_t kMatrixStepBytes = 64;       // of a pixel: a row of a tile
inline constexpr int64_t kMatrixWeightsBytes = 1024;  // of a step and 16 output channels

// The loops of `config` count steps: a channel is kMatrixStepBytes of src and kMatrixWeightsBytes
// of weights, an input block is one of them, and every tap lies inside src for every pixel. Weights
// of a block of outputs lie in the order of the steps. The unit has 16 lanes. A tile has a bias or
// a compensation of pixels, not both.
//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateMatrixTile(
    absl::string_view name, const IntegerTileConfig& config);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_MATRIX_TILE_H_
