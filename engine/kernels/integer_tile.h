// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the integer convolution and inner product for one tile: `pixels`
// neighbouring outputs of one row times `blocks` blocks of `lanes` output channels, their s32 sums
// in registers over the whole reduction (see tap_loop_generator.h). Input channels come in quads,
// four bytes side by side; weights hold, for each quad, four bytes for each of the lanes. For a
// quad:
//
//   load a vector of weights for each output block; broadcast a quad of src for each pixel; dot
//   products
//
// Sums are exact (modulo 2^32), and so do not depend on their order.
#ifndef ENGINE_KERNELS_INTEGER_TILE_H_
#define ENGINE_KERNELS_INTEGER_TILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/kernels/accumulator_epilogue.h"
#include "engine/kernels/tap_loops.h"

namespace tilewire {

// Products that an integer instruction adds up: s8 weights lie in as many input channels.
inline constexpr int64_t kQuad = 4;

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

inline constexpr IntegerIsa kAvx2Integers = {
    .lanes = 8, .vectors = 16, .dot = DotProduct::kWidened};
inline constexpr IntegerIsa kAvx512Integers = {
    .lanes = 16, .vectors = 32, .dot = DotProduct::kWidened};
inline constexpr IntegerIsa kVnniIntegers = {.lanes = 16, .vectors = 32, .dot = DotProduct::kVnni};

inline constexpr IntegerIsa IntegersOf(cpu::Isa isa) {
  if (isa.Includes(cpu::Isa::kAvx512Vnni)) return kVnniIntegers;
  return isa.Includes(cpu::Isa::kAvx512) ? kAvx512Integers : kAvx2Integers;
}

struct IntegerConfig {
  EpilogueConfig epilogue;  // lanes, blocks, pixels, dst
  TapLoops loops;           // a channel is a quad
  DotProduct dot = DotProduct::kVnni;
  bool signed_src = false;    // kWidened, and depthwise
  bool fetches_next = false;  // one tap: the bytes of the next tile's src follow this one's
  bool packed_src = false;    // depthwise: what follows the last channel belongs to somebody else
};

// What one call works on. Pointers are to the first valid depth and height tap, width tap 0.
struct IntegerArgs {
  const std::byte* src;
  const std::byte* weights;
  const std::byte* bias;
  const float* scales;
  const int32_t* compensation;
  std::byte* dst;
  TapLoopArgs loops;
};
using IntegerFunction = void (*)(const IntegerArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateInteger(absl::string_view name,
                                                                      const IntegerConfig& config);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_INTEGER_TILE_H_
