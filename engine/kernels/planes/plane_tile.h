// SPDX-License-Identifier: Apache-2.0
//
// Generates a tile of a product of f32 matrices on matrix tiles (AMX, matrix_tile_generator.h),
// from operands that have been split into planes of bf16 (plane_split.h): up to 32 rows times up to
// 2 blocks of 16 outputs.
//
//   dst[r,o] = postops(bias[o] + sum over steps, i + j < planes of a_i[r] * b_j[o])
//
// One plane is a product of bf16 numbers. With two planes the sum has three products, and what is
// left out, a_1 * b_1 and what planes lose, is 3 * 2^-16 of the whole product at most, of either
// sign. With three it has six, and 2^-22 is left out at most, of either sign, too. The errors of
// sums are those of f32 or smaller, as a step adds its 32 products in two chains before they meet
// the sum.
//
// A step is one line of 32 numbers per row (16 pairs, of kPlaneLineBytes) and plane. Only one tile
// of either operand is in use; from product to product one of the two stays where that is possible.
#ifndef ENGINE_KERNELS_PLANES_PLANE_TILE_H_
#define ENGINE_KERNELS_PLANES_PLANE_TILE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/matrix_tiles.h"
#include "engine/kernels/tiles/tile_end_parts.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

// Distances are bytes.
struct PlaneTileConfig {
  int planes = 1;
  EpilogueConfig epilogue;     // `pixels` are rows
  std::vector<int64_t> steps;  // where they begin, from the first row's line on
  int64_t row_bytes = kPlaneLineBytes,
          plane_bytes = kPlaneStepBytes;  // from row to row, plane to plane
  bool reads_whole_tiles = true;          // lines of 16 rows may be read where a tile has fewer
  TileEndParts::Pixels rows = TileEndParts::Pixels::kInRuns;
};

// Its function is an IntegerTileFunction, whose weights are [step][plane][2 blocks][16 lines]:
// those of a group of PlaneLayout. Calls hand their ends on to each other (matrix_tiles.h).
//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GeneratePlaneTile(
    absl::string_view name, const PlaneTileConfig& config);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_TILE_H_
