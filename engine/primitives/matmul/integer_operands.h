// SPDX-License-Identifier: Apache-2.0
//
// Matrices of bytes, as tiles of integer products read them. Pure functions.
#ifndef ENGINE_PRIMITIVES_MATMUL_INTEGER_OPERANDS_H_
#define ENGINE_PRIMITIVES_MATMUL_INTEGER_OPERANDS_H_

#include <cstdint>

namespace tilewire::matmul {

// A matrix by its strides, in bytes. `flip` is 0x80 where u8 are to be read as s8 that are 128
// less, or s8 as u8 that are 128 more; else 0.
struct ByteMatrix {
  const uint8_t* first;
  int64_t rows, columns, row_stride, column_stride;
  uint8_t flip;
};

// Columns [first, end) of weights to [column / lanes][rows / 4][lanes][4], where the rows are
// rounded up to `packed_rows`, a multiple of 4. Lanes of other columns and rows hold anything.
void PackQuads(const ByteMatrix& weights, int64_t first, int64_t end, int lanes,
               int64_t packed_rows, uint8_t* to);

// A row to `bytes` neighbouring bytes, with zeros after the last column.
void CopyRow(const ByteMatrix& src, int64_t row, int64_t bytes, uint8_t* to);

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_INTEGER_OPERANDS_H_
