// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_tile.h"

#include "engine/kernels/tiles/matrix_tile_generator.h"

namespace tilewire {

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateMatrixTile(
    absl::string_view name, const IntegerTileConfig& config) {
  return jit::Compile<MatrixTileGenerator>(
      name, MatrixTileConfig{.epilogue = config.epilogue,
                             .numbers = config.signed_src ? MatrixNumbers::kSignedBytes
                                                          : MatrixNumbers::kUnsignedBytes,
                             .steps = MatrixStepsOf(config.loops, config.input_blocks),
                             .src_pixel = config.loops.src_pixel,
                             .weights_step = kMatrixWeightsBytes,
                             .weights_block = config.loops.weights_oc_block,
                             .runs = config.runs});
}

}  // namespace tilewire
