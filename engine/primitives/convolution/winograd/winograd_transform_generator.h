// SPDX-License-Identifier: Apache-2.0
//
// Generates the transforms of a Winograd convolution, for one tile and a run of channel blocks:
//
//   input   V = B^T d B    d: (tile + 2)^2 pixels of src, V: as many points
//   output  Y = A^T M A    Y: tile^2 pixels, or the rows and columns of them that lie inside dst,
//                          with bias and post-ops; or the maximum of each 2x2 of them
//
// Points are numbered row by row and lie `point_bytes` apart. See winograd_transforms.h.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TRANSFORM_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TRANSFORM_GENERATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"

namespace tilewire::convolution {

struct WinogradInputConfig {
  jit::VectorUnit unit;
  int tile = 4;
  int64_t point_bytes = 0, block_bytes = 0;  // of V
};

struct WinogradInputArgs {
  const float* src;  // the patch's first pixel; pixels of a row are a vector apart
  float* v;
  int64_t row_bytes, block_bytes;  // of src
  jit::LoopCount blocks;
};
using WinogradInputFunction = void (*)(const WinogradInputArgs*);

struct WinogradOutputConfig {
  jit::VectorUnit unit;
  int tile = 4;
  int64_t point_bytes = 0, block_bytes = 0;  // of M
  int rows = 4, columns = 4;  // that are computed, even numbers where they are pooled
  int64_t dst_row_bytes = 0, dst_pixel_bytes = 0, dst_block_bytes = 0;
  bool bias = false;
  int tail_lanes = 0;  // channels of every block of the run; 0: all of them
  PostOps post_ops;
  bool pools = false;  // dst has a pixel for each 2x2
};

struct WinogradOutputArgs {
  const float* m;
  float* dst;         // the tile's first pixel
  const float* bias;  // of the first block
  jit::LoopCount blocks;
  const float* slopes;  // of a PRelu, of the first block
};
using WinogradOutputFunction = void (*)(const WinogradOutputArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradInput(
    absl::string_view name, const WinogradInputConfig& config);
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateWinogradOutput(
    absl::string_view name, const WinogradOutputConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TRANSFORM_GENERATOR_H_
