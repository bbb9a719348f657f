// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/attention/matrix_copy.h"

#include <cstring>

namespace tilewire::attention {
namespace {

constexpr int64_t kFour = 4;
using Four = float __attribute__((vector_size(kFour * sizeof(float))));

Four LoadFour(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

void StoreFour(const Four& four, float* to) { std::memcpy(to, &four, sizeof(four)); }

// Four rows of four columns, of a matrix whose columns lie in memory one after the other.
void TurnFour(const float* from, int64_t column_stride, float* to, int64_t to_stride) {
  const Four a = LoadFour(from), b = LoadFour(from + column_stride),
             c = LoadFour(from + 2 * column_stride), d = LoadFour(from + 3 * column_stride);
  const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  StoreFour(__builtin_shufflevector(ab, cd, 0, 1, 4, 5), to);
  StoreFour(__builtin_shufflevector(ab, cd, 2, 3, 6, 7), to + to_stride);
  StoreFour(__builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5), to + 2 * to_stride);
  StoreFour(__builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7), to + 3 * to_stride);
}

// The part of the matrix from (row, column) on that whole squares of four leave, in one of its
// dimensions or both.
void CopyRest(const MatrixView& from, int64_t row, int64_t column, float* to, int64_t to_stride) {
  for (int64_t r = 0; r < from.rows; ++r) {
    for (int64_t c = r < row ? column : 0; c < from.columns; ++c)
      to[r * to_stride + c] = from.first[r * from.row_stride + c * from.column_stride];
  }
}

}  // namespace

void CopyMatrix(const MatrixView& from, float* to, int64_t to_stride) {
  if (from.column_stride == 1) {
    for (int64_t r = 0; r < from.rows; ++r) {
      std::memcpy(to + r * to_stride, from.first + r * from.row_stride,
                  from.columns * sizeof(float));
    }
    return;
  }
  int64_t rows = 0, columns = 0;  // copied
  if (from.row_stride == 1) {
    rows = from.rows / kFour * kFour;
    columns = from.columns / kFour * kFour;
    for (int64_t c = 0; c < columns; c += kFour) {
      for (int64_t r = 0; r < rows; r += kFour) {
        TurnFour(from.first + c * from.column_stride + r, from.column_stride,
                 to + r * to_stride + c, to_stride);
      }
    }
  }
  CopyRest(from, rows, columns, to, to_stride);
}

void AddRow(const float* from, int64_t step, int64_t count, float* to) {
  int64_t i = 0;
  for (; step == 1 && i + kFour <= count; i += kFour)
    StoreFour(LoadFour(to + i) + LoadFour(from + i), to + i);
  for (; i < count; ++i) to[i] += from[i * step];
}

}  // namespace tilewire::attention
