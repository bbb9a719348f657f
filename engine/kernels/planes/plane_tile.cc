// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/plane_tile.h"

#include "engine/kernels/tiles/matrix_tile_generator.h"

namespace tilewire {

absl::StatusOr<std::unique_ptr<const jit::Generator>> GeneratePlaneTile(
    absl::string_view name, const PlaneTileConfig& config) {
  return jit::Compile<MatrixTileGenerator>(
      name, MatrixTileConfig{.epilogue = config.epilogue,
                             .numbers = MatrixNumbers::kBf16,
                             .planes = config.planes,
                             .steps = config.steps,
                             .src_pixel = config.row_bytes,
                             .src_plane = config.plane_bytes,
                             .weights_step = config.planes * kPlaneStepBytes,
                             .weights_plane = kPlaneStepBytes,
                             .weights_block = kPlaneBlockBytes,
                             .reads_whole_tiles = config.reads_whole_tiles,
                             .pixels = config.rows});
}

}  // namespace tilewire
