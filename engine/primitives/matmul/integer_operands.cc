// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/integer_operands.h"

#include <algorithm>
#include <cstring>

#include "engine/base/checked_math.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kRowsOfQuad = 4;
constexpr int kMostLanes = 16, kFewestLanes = 8;
constexpr int64_t kQuadsAtOnce = 64;  // lines of packed weights that stay in the first cache

using Bytes16 = uint8_t __attribute__((vector_size(kMostLanes)));

// The elements of two vectors in turn: the first halves, and the second.
Bytes16 ZipLow(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
Bytes16 ZipHigh(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
// The same of pairs.
Bytes16 ZipPairsLow(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
}
Bytes16 ZipPairsHigh(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30,
                                 31);
}

// What four rows of 16 columns become.
void ZipRows(const Bytes16 (&rows)[kRowsOfQuad], Bytes16 (&quads)[kRowsOfQuad]) {
  const Bytes16 low = ZipLow(rows[0], rows[1]), high = ZipHigh(rows[0], rows[1]);
  const Bytes16 next_low = ZipLow(rows[2], rows[3]), next_high = ZipHigh(rows[2], rows[3]);
  quads[0] = ZipPairsLow(low, next_low);
  quads[1] = ZipPairsHigh(low, next_low);
  quads[2] = ZipPairsLow(high, next_high);
  quads[3] = ZipPairsHigh(high, next_high);
}

// `count` rows, up to four, of `width` columns that are neighbours in memory, to [lanes][4].
template <int kLanes>
void PackRowsOfQuad(const ByteMatrix& weights, const uint8_t* from, int64_t count, int64_t width,
                    uint8_t* to) {
  Bytes16 rows[kRowsOfQuad] = {}, quads[kRowsOfQuad];
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(&rows[i], from + i * weights.row_stride, width);
    rows[i] ^= weights.flip;
  }
  ZipRows(rows, quads);
  std::memcpy(to, quads, kLanes * kRowsOfQuad);
}

// A block of columns that are neighbours in memory. The common case is one of constants.
template <int kLanes>
void PackRows(const ByteMatrix& weights, int64_t column, int64_t width, int64_t packed_rows,
              uint8_t* to) {
  const uint8_t* from = weights.first + column;
  int64_t row = 0;
  for (; width == kLanes && row + kRowsOfQuad <= weights.rows; row += kRowsOfQuad)
    PackRowsOfQuad<kLanes>(weights, from + row * weights.row_stride, kRowsOfQuad, kLanes,
                           to + row * kLanes);
  for (; row < packed_rows; row += kRowsOfQuad) {
    const int64_t count = std::clamp<int64_t>(weights.rows - row, 0, kRowsOfQuad);
    PackRowsOfQuad<kLanes>(weights, from + row * weights.row_stride, count, width,
                           to + row * kLanes);
  }
}

// The quad from `row` on of a column that begins at `from`.
uint32_t QuadOf(const ByteMatrix& weights, const uint8_t* from, int64_t row) {
  uint8_t bytes[kRowsOfQuad] = {};
  const int64_t rows = std::min(kRowsOfQuad, weights.rows - row);
  for (int64_t i = 0; i < rows; ++i) bytes[i] = from[(row + i) * weights.row_stride];
  uint32_t quad;
  std::memcpy(&quad, bytes, kRowsOfQuad);
  return quad;
}

// Of columns that may be anywhere: those of transposed weights are neighbouring bytes.
void PackColumns(const ByteMatrix& weights, int64_t column, int64_t width, int lanes, uint8_t* to) {
  const uint32_t flip = weights.flip * 0x01010101u;
  const int64_t quads = DivUp(weights.rows, kRowsOfQuad);
  const int64_t whole = weights.row_stride == 1 ? weights.rows / kRowsOfQuad : 0;
  for (int64_t begin = 0; begin < quads; begin += kQuadsAtOnce) {
    const int64_t end = std::min(quads, begin + kQuadsAtOnce);
    for (int64_t lane = 0; lane < width; ++lane) {
      const uint8_t* from = weights.first + (column + lane) * weights.column_stride;
      uint8_t* quad_to = to + lane * kRowsOfQuad;
      for (int64_t quad = begin; quad < end; ++quad) {
        uint32_t value;
        if (quad < whole) {
          std::memcpy(&value, from + quad * kRowsOfQuad, kRowsOfQuad);
        } else {
          value = QuadOf(weights, from, quad * kRowsOfQuad);
        }
        value ^= flip;
        std::memcpy(quad_to + quad * lanes * kRowsOfQuad, &value, kRowsOfQuad);
      }
    }
  }
}

}  // namespace

void PackQuads(const ByteMatrix& weights, int64_t first, int64_t end, int lanes,
               int64_t packed_rows, uint8_t* to) {
  for (int64_t column = first; column < end; column += lanes, to += lanes * packed_rows) {
    const int64_t width = std::min<int64_t>(lanes, end - column);
    if (weights.column_stride == 1 && lanes == kMostLanes) {
      PackRows<kMostLanes>(weights, column, width, packed_rows, to);
    } else if (weights.column_stride == 1) {
      PackRows<kFewestLanes>(weights, column, width, packed_rows, to);
    } else {
      PackColumns(weights, column, width, lanes, to);
    }
  }
}

void CopyRow(const ByteMatrix& src, int64_t row, int64_t bytes, uint8_t* to) {
  const uint8_t* from = src.first + row * src.row_stride;
  int64_t i = 0;
  for (; src.column_stride == 1 && i + kMostLanes <= src.columns; i += kMostLanes) {
    Bytes16 some;
    std::memcpy(&some, from + i, kMostLanes);
    some ^= src.flip;
    std::memcpy(to + i, &some, kMostLanes);
  }
  for (; i < src.columns; ++i) to[i] = from[i * src.column_stride] ^ src.flip;
  std::fill(to + src.columns, to + bytes, uint8_t{0});
}

int32_t SumOfBytes(const uint8_t* bytes, int64_t count, bool is_signed) {
  constexpr int64_t kMostAtOnce = 128 * kMostLanes;  // whose sums fit 16 bits
  using Words8 = uint16_t __attribute__((vector_size(kMostLanes)));
  const uint8_t flip = is_signed ? 0x80 : 0;
  uint32_t sum = 0;
  int64_t i = 0;
  while (count - i >= kMostLanes) {
    const int64_t end = i + std::min(count - i, kMostAtOnce) / kMostLanes * kMostLanes;
    Words8 sums = {};
    for (; i < end; i += kMostLanes) {
      Bytes16 some;
      std::memcpy(&some, bytes + i, kMostLanes);
      some ^= flip;
      Words8 pairs;
      std::memcpy(&pairs, &some, kMostLanes);
      sums += (pairs & 0xFF) + (pairs >> 8);
    }
    for (int lane = 0; lane < kMostLanes / 2; ++lane) sum += sums[lane];
  }
  for (; i < count; ++i) sum += bytes[i] ^ flip;
  return static_cast<int32_t>(sum - (is_signed ? 128u * static_cast<uint32_t>(count) : 0u));
}

}  // namespace tilewire::matmul
