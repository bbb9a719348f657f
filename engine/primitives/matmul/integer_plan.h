// SPDX-License-Identifier: Apache-2.0
//
// How a product of integers is computed by tiles, and where its scratchpad holds what.
//
// With a and b the bytes that tiles multiply, and their zero points p and q,
//
//   sum (a - p)(b - q) = sum a b  +  (K p q - p * sum of b's column)  -  q * sum of a's row
//
// The sums of columns come from a tile too, of one row of ones, when the weights have been packed.
// Where an instruction takes u8 times s8 only, other bytes are flipped: 128 is added to or
// subtracted from them and their zero point.
#ifndef ENGINE_PRIMITIVES_MATMUL_INTEGER_PLAN_H_
#define ENGINE_PRIMITIVES_MATMUL_INTEGER_PLAN_H_

#include <cstdint>
#include <optional>

#include "engine/kernels/products/integer_product.h"
#include "engine/primitives/matmul/batches.h"

namespace tilewire::matmul {

// One side of the product.
struct IntegerSide {
  uint8_t flip = 0;
  int32_t zero = 0;        // of the bytes after it; with a range, what is added to its zero point
  bool has_range = false;  // it is known at run time

  bool has_zero() const { return zero != 0 || has_range; }
};

struct IntegerPlan {
  IntegerPlan(const MatmulDesc& desc, const PostOps& post_ops, cpu::Isa isa);

  int64_t WeightsBytes() const { return groups * kind.columns() * k; }  // of a packed matrix
  int64_t PaddedColumns() const { return groups * kind.columns(); }

  IntegerTileKind kind;
  Shape shape;
  int64_t src_batch;   // different matrices
  int64_t k;           // bytes of a row as tiles read it
  bool copies_src;     // which cannot be read where it lies
  bool src_is_signed;  // as tiles read it
  IntegerSide src, weights;
  int max_rows;
  int64_t groups;  // of columns
  // Where the scratchpad has, after the packed weights, what is added to their columns; rows of
  // src; what is added to them; the scale of a range for each column of a tile. And its size;
  // nullopt where that is too much.
  int64_t columns_at = 0, src_at = 0, rows_at = 0, scales_at = 0;
  std::optional<int64_t> scratchpad_bytes;

 private:
  void PlaceParts();
};

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_INTEGER_PLAN_H_
