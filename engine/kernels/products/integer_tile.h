// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the integer convolution and inner product for one tile: `pixels`
// neighbouring outputs of one row times `blocks` vectors of output channels, whose s32 sums stay in
// registers over the whole reduction (see tap_loops.h). Input channels come in quads, four bytes
// side by side; weights hold four bytes per lane for each quad. For a quad:
//
//   load a vector of weights for each output block
//   for each pixel: broadcast its quad of src, and add its dot products with the weights
//
// A unit with dot products adds u8 x s8 with vpdpbusd. Others form pairs of products with
// vpmaddubsw, in 16 bits, where the descriptor of the weights promises that these are so small that
// a pair never saturates (MemoryExtra::kBounded). Else they widen bytes to 16-bit numbers for
// vpmaddwd, which also takes s8 x s8. Sums are exact modulo 2^32, and so do not depend on their
// order.
#ifndef ENGINE_KERNELS_PRODUCTS_INTEGER_TILE_H_
#define ENGINE_KERNELS_PRODUCTS_INTEGER_TILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/matrix_plan.h"
#include "engine/kernels/tiles/tap_loops.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

// How many input channels an integer instruction adds up in a lane.
inline constexpr int64_t kQuad = 4;

// How products of bytes are formed and reach the sums.
enum class ByteProducts : uint8_t { kDots, kPairs, kWidened };

// The largest magnitude of weights whose pairs of products with u8 fit 16 bits.
inline constexpr int kPairBound = 64;
static_assert(2 * 255 * kPairBound <= 32767);

// `weights` may be `any`.
inline ByteProducts ByteProductsOf(const VectorUnit& unit, const MemoryDesc& weights) {
  if (unit.has_dot_products()) return ByteProducts::kDots;
  const bool fits = weights.IsBounded() && weights.extra().bound <= kPairBound;
  return fits ? ByteProducts::kPairs : ByteProducts::kWidened;
}
// For weights without a bound.
inline ByteProducts ByteProductsOf(const VectorUnit& unit) {
  return unit.has_dot_products() ? ByteProducts::kDots : ByteProducts::kWidened;
}

// How many vector registers the loop needs beside the sums, one vector of weights per block and one
// of src.
inline int ExtraIntegerVectors(ByteProducts products) {
  return products == ByteProducts::kDots ? 0 : products == ByteProducts::kPairs ? 2 : 5;
}

struct MatrixTiles;  // matrix_tiles.h

struct IntegerTileConfig {
  EpilogueConfig epilogue;                      // unit, blocks, pixels, dst
  TapLoops loops;                               // a channel is a quad
  ByteProducts products = ByteProducts::kDots;  // that the unit has; not of matrix tiles
  bool signed_src = false;    // only where bytes are widened, depthwise, and on matrix tiles
  bool fetches_next = false;  // one tap: the bytes of the next tile's src follow this one's
  bool packed_src = false;    // depthwise: the bytes after the last channel must not be read
  // On matrix tiles: whether a quad is two numbers of bf16, and sums are f32; the input blocks, and
  // what is stored, if that is not all pixels side by side.
  bool is_bf16 = false;
  int64_t input_blocks = 0;
  std::vector<PixelRun> runs = {};
};

// The arguments of one call. Pointers are to the first valid depth and height tap, width tap 0.
struct IntegerTileArgs {
  const std::byte* src;
  const std::byte* weights;
  const std::byte* bias;
  const float* scales;
  const int32_t* compensation;
  std::byte* dst;
  TapLoopArgs loops;
  MatrixTiles* tiles = nullptr;  // on matrix tiles: what the calls of a piece of work share
  const int32_t* pixel_compensation = nullptr;
  // Where a tile of planes asks for them (TileEndParts::Pixels): how many bytes after dst each
  // pixel goes; negative if it is not stored.
  const int32_t* places = nullptr;
};
using IntegerTileFunction = void (*)(const IntegerTileArgs*);

// Emits how the registers of an epilogue get the arguments that it reads; rdi holds all of them.
void LoadEpilogueArguments(Xbyak::CodeGenerator* g, const EpilogueConfig& epilogue,
                           const AccumulatorEpilogue::Registers& to);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateIntegerTile(
    absl::string_view name, const IntegerTileConfig& config);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_INTEGER_TILE_H_
