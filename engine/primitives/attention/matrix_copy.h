// SPDX-License-Identifier: Apache-2.0
//
// Copies of small matrices of floats, and sums of rows, four elements at once. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_ATTENTION_MATRIX_COPY_H_
#define ENGINE_PRIMITIVES_ATTENTION_MATRIX_COPY_H_

#include <cstdint>

namespace tilewire::attention {

// Elements of rows and columns, each row_stride and column_stride apart.
struct MatrixView {
  const float* first;
  int64_t rows, columns, row_stride, column_stride;
};

// to[r * to_stride + c] = element (r, c). Fast where rows or columns are neighbours in memory.
void CopyMatrix(const MatrixView& from, float* to, int64_t to_stride);

// to[i] += from[i * step]
void AddRow(const float* from, int64_t step, int64_t count, float* to);

}  // namespace tilewire::attention

#endif  // ENGINE_PRIMITIVES_ATTENTION_MATRIX_COPY_H_
