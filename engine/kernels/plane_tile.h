// SPDX-License-Identifier: Apache-2.0
//
// Generates a tile of a product of f32 matrices on matrix tiles (AMX), from operands that have been
// split into planes of bf16 (plane_split.h): up to 32 rows times up to 2 blocks of 16 outputs.
//
//   dst[r,o] = postops(bias[o] + sum over steps, i + j < planes of a_i[r] * b_j[o])
//
// One plane is a product of bf16 numbers. With two planes the sum has three products, and what is
// left out, a_1 * b_1 and what planes lose, is 3 * 2^-16 of the whole product at most, of either
// sign. With three it has six, and 2^-21 is left out at most, about 2^-23 in the mean. The errors
// of sums are those of f32 or smaller, as a step adds its 32 products in two chains before they
// meet the sum.
//
// A step is one line of 32 numbers per row (16 pairs, of kPlaneLineBytes) and plane:
//
//   tile 2 * block + half   the sums: `half` is the first or second 16 rows
//   tile 4                  a plane of 16 rows of a
//   tile 6                  a plane of 16 outputs of b
//
// Only one tile of either operand is in use, so that six are in all: see matrix_tile.h. From
// product to product one of the two operands stays where that is possible.
//
// The order of the products of an element depends on whether its block is the first or the second,
// and on nothing else: not on how many rows or blocks there are.
#ifndef ENGINE_KERNELS_PLANE_TILE_H_
#define ENGINE_KERNELS_PLANE_TILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/accumulator_epilogue.h"
#include "engine/kernels/matrix_tile.h"
#include "engine/kernels/spilled_sums.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

inline constexpr int kPlaneRows = 32;

// Both operands are [step][plane][32 lines]: of 32 rows, and of the pairs of two blocks of outputs.
// All tiles are configured, see ConfigureWholeTiles().
struct PlaneTileArgs {
  const std::byte *a, *b;
  int64_t steps;      // at least 1
  const float* bias;  // of the first block
  std::byte* dst;     // of the first row and block
};
using PlaneTileFunction = void (*)(const PlaneTileArgs*);

class PlaneTile final : public jit::Generator {
 public:
  // `pixels` of the epilogue are rows.
  PlaneTile(absl::string_view name, int planes, const EpilogueConfig& epilogue);

  // Of a step, in order.
  struct Product {
    int block, half, a_plane, b_plane;
  };
  static std::vector<Product> ProductsOf(int planes, int blocks, int halves);

 private:
  void Emit() override;
  void EmitStep();
  void Finish();
  int halves() const { return epilogue_.pixels > kPlaneLanes ? 2 : 1; }
  static Xbyak::Tmm SumTile(int block, int half) { return Xbyak::Tmm(2 * block + half); }

  const int planes_;
  const EpilogueConfig epilogue_;

  const Xbyak::Reg64 args_ = rdi, a_ = rsi, b_ = rdx, line_bytes_ = rcx, steps_left_ = r8;
  const Xbyak::Reg64 dst_ = rsi, bias_ = rdx, sums_ = r9, chunks_left_ = r10;
  SpilledSums spilled_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANE_TILE_H_
