// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the integer convolution and inner product for one tile: `pixels`
// neighbouring outputs of one row times `blocks` blocks of `lanes` output channels, their s32 sums
// in registers over the whole reduction. Input channels come in quads, four bytes side by side;
// weights hold, for each quad, four bytes for each of the lanes:
//
//   for input block, depth tap, height tap (run-time counts; taps in the padding are left out by
//   the caller)
//     for width tap (emitted for the pixels that do not read it from the padding)
//       for quad of the block
//         load a vector of weights for each output block; broadcast a quad of src for each pixel;
//         dot products
//
// Sums are exact (modulo 2^32), and so do not depend on their order.
#ifndef ENGINE_PRIMITIVES_INTEGER_TILE_GENERATOR_H_
#define ENGINE_PRIMITIVES_INTEGER_TILE_GENERATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/primitives/accumulator_epilogue.h"
#include "engine/primitives/tap_runs.h"

namespace tilewire {

enum class DotProduct : uint8_t {
  kVnni,     // vpdpbusd: u8 x s8
  kWidened,  // bytes become 16-bit numbers, vpmaddwd: u8 or s8 x s8. vpmaddubsw would saturate
};

// What an instruction set offers.
struct IntegerIsa {
  int lanes = 16, vectors = 32;
  DotProduct dot = DotProduct::kVnni;

  // Left for sums, one vector of weights a block and one of src: kWidened needs more beside them.
  int TilingVectors() const { return dot == DotProduct::kVnni ? vectors : vectors - 5; }
};

// Strides are bytes. 1D and 2D have leading dimensions of size 1.
struct IntegerConfig {
  EpilogueConfig epilogue;  // lanes, blocks, pixels, dst
  int vector_registers = 32;
  DotProduct dot = DotProduct::kVnni;
  bool signed_src = false;  // kWidened, and depthwise
  bool packed_src = false;  // depthwise: what follows the last channel belongs to somebody else
  int quads = 1;            // of a full input block
  int tail_quads = 0;       // of the last one, if it is not full
  bool full_blocks = true;  // there are some
  int64_t src_pixel = 0, src_block = 0;
  std::array<int64_t, 3> src_tap{0, 0, 0}, kernel{1, 1, 1};  // depth, height, width
  int64_t weights_oc_block = 0, weights_ic_block = 0;
  std::vector<TapRange> taps;  // for each pixel, the width taps that lie inside src
};

// What one call works on. Pointers are to the first valid depth and height tap, width tap 0.
struct IntegerArgs {
  const std::byte* src;
  const std::byte* weights;
  const std::byte* bias;
  const float* scales;
  const int32_t* compensation;
  std::byte* dst;
  int64_t full_blocks;              // input blocks
  int64_t tail_blocks;              // 1 when the block with tail_quads follows them, else 0
  int64_t depth_taps, height_taps;  // >= 1 unless there are no blocks
};
using IntegerFunction = void (*)(const IntegerArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateInteger(absl::string_view name,
                                                                      const IntegerConfig& config);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_INTEGER_TILE_GENERATOR_H_
