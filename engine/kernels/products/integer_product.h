// SPDX-License-Identifier: Apache-2.0
//
// Tiles of the product of rows of bytes and packed weights, which inner products and matrix
// products share: integer_tile.h, or matrix_tile.h where the instruction set has matrix tiles. A
// row is K bytes, rounded up to whole steps; weights lie as [O / lanes][K / 4][lanes][4], zeros
// beyond the real ones.
//
// Pure functions.
#ifndef ENGINE_KERNELS_PRODUCTS_INTEGER_PRODUCT_H_
#define ENGINE_KERNELS_PRODUCTS_INTEGER_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/kernels/products/integer_tile.h"

namespace tilewire {

// The kind of tiles that an instruction set has, for weights without a bound, or those of
// `weights`, which may be `any`.
struct IntegerTileKind {
  explicit IntegerTileKind(cpu::Isa isa);
  IntegerTileKind(cpu::Isa isa, const MemoryDesc& weights);

  int MaxBlocks() const;
  int MaxRows(const PostOps& post_ops) const;
  int64_t columns() const { return int64_t{MaxBlocks()} * unit.lanes(); }
  // The input channels that one step of the reduction takes.
  int64_t step() const;
  // Whether src has to be u8.
  bool TakesUnsignedOnly() const { return products != ByteProducts::kWidened && !is_matrix; }
  // Whether weights are packed to a descriptor with this bound.
  bool NeedsBound() const { return products == ByteProducts::kPairs && !is_matrix; }

  VectorUnit unit;
  ByteProducts products;
  bool is_matrix;  // matrix_tile.h
};

// Sets how rows of `k` bytes are reduced that are `src_row` bytes apart; `config` has its epilogue.
void SetProductLoops(const IntegerTileKind& kind, int64_t k, int64_t src_row,
                     IntegerTileConfig* config);
// The counts of these loops.
TapLoopArgs ProductLoopArgs(int64_t k);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateProductTile(
    const IntegerTileKind& kind, absl::string_view name, const IntegerTileConfig& config);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_INTEGER_PRODUCT_H_
