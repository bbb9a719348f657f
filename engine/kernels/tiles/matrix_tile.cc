// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_tile.h"

#include "engine/kernels/tiles/matrix_tile_generator.h"

namespace tilewire {

namespace {

MatrixNumbers NumbersOf(const IntegerTileConfig& config) {
  if (config.is_bf16) return MatrixNumbers::kBf16;
  return config.signed_src ? MatrixNumbers::kSignedBytes : MatrixNumbers::kUnsignedBytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateMatrixTile(
    absl::string_view name, const IntegerTileConfig& config) {
  return jit::Compile<MatrixTileGenerator>(
      name, MatrixTileConfig{.epilogue = config.epilogue,
                             .numbers = NumbersOf(config),
                             .steps = MatrixStepsOf(config.loops, config.input_blocks),
                             .src_pixel = config.loops.src_pixel,
                             .weights_step = kMatrixWeightsBytes,
                             .weights_block = config.loops.weights_oc_block,
                             .keeps_src = config.loops.src_pixel % kMatrixLineBytes != 0,
                             .runs = config.runs});
}

}  // namespace tilewire
