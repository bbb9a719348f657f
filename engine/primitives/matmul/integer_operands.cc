// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/integer_operands.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"

namespace tilewire::matmul {
namespace {

constexpr int64_t kRowsOfQuad = 4;
constexpr int kMostLanes = 16, kFewestLanes = 8;

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

// Interleaves four rows of 16 columns into quads.
void ZipRows(const Bytes16 (&rows)[kRowsOfQuad], Bytes16 (&quads)[kRowsOfQuad]) {
  const Bytes16 low = ZipLow(rows[0], rows[1]), high = ZipHigh(rows[0], rows[1]);
  const Bytes16 next_low = ZipLow(rows[2], rows[3]), next_high = ZipHigh(rows[2], rows[3]);
  quads[0] = ZipPairsLow(low, next_low);
  quads[1] = ZipPairsHigh(low, next_low);
  quads[2] = ZipPairsLow(high, next_high);
  quads[3] = ZipPairsHigh(high, next_high);
}

// Four rows of a block of columns to [lanes][4]; bytes of rows that are not there are any.
template <int kLanes>
void StoreQuads(const Bytes16 (&rows)[kRowsOfQuad], uint8_t* to) {
  Bytes16 quads[kRowsOfQuad];
  ZipRows(rows, quads);
  std::memcpy(to, quads, kLanes * kRowsOfQuad);
}

// Rows and columns that do not fill a quad or a block.
template <int kLanes>
void PackPart(const ByteMatrix& weights, const uint8_t* from, int64_t count, int64_t width,
              uint8_t* to) {
  Bytes16 rows[kRowsOfQuad] = {};
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(&rows[i], from + i * weights.row_stride, width);
    rows[i] ^= weights.flip;
  }
  StoreQuads<kLanes>(rows, to);
}

template <int kLanes>
Bytes16 LoadRow(const uint8_t* from, uint8_t flip) {
  Bytes16 row = {};
  std::memcpy(&row, from, kLanes);
  return row ^ flip;
}

// A block of columns that are neighbours in memory.
template <int kLanes>
void PackRows(const ByteMatrix& weights, int64_t column, int64_t width, int64_t packed_rows,
              uint8_t* to) {
  const uint8_t* from = weights.first + column;
  const int64_t stride = weights.row_stride;
  const uint8_t flip = weights.flip;
  const int64_t whole = width == kLanes ? weights.rows / kRowsOfQuad * kRowsOfQuad : 0;
  for (int64_t row = 0; row < whole; row += kRowsOfQuad) {
    const uint8_t* quad = from + row * stride;
    const Bytes16 rows[kRowsOfQuad] = {
        LoadRow<kLanes>(quad, flip), LoadRow<kLanes>(quad + stride, flip),
        LoadRow<kLanes>(quad + 2 * stride, flip), LoadRow<kLanes>(quad + 3 * stride, flip)};
    StoreQuads<kLanes>(rows, to + row * kLanes);
  }
  for (int64_t row = whole; row < packed_rows; row += kRowsOfQuad) {
    const int64_t count = std::clamp<int64_t>(weights.rows - row, 0, kRowsOfQuad);
    PackPart<kLanes>(weights, from + row * stride, count, width, to + row * kLanes);
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

using Quads4 = uint32_t __attribute__((vector_size(4 * kRowsOfQuad)));

// Four quads of each of four columns, whose bytes are neighbours, become four of each quad.
void TurnQuads(const uint8_t* from, int64_t column_stride, uint32_t flip, int64_t line_bytes,
               uint8_t* to) {
  Quads4 a, b, c, d;
  std::memcpy(&a, from, sizeof(a));
  std::memcpy(&b, from + column_stride, sizeof(b));
  std::memcpy(&c, from + 2 * column_stride, sizeof(c));
  std::memcpy(&d, from + 3 * column_stride, sizeof(d));
  const Quads4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) ^ flip;
  const Quads4 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) ^ flip;
  const Quads4 ab_end = __builtin_shufflevector(a, b, 2, 6, 3, 7) ^ flip;
  const Quads4 cd_end = __builtin_shufflevector(c, d, 2, 6, 3, 7) ^ flip;
  const Quads4 lines[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                           __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                           __builtin_shufflevector(ab_end, cd_end, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_end, cd_end, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * line_bytes, &lines[i], sizeof(lines[i]));
}

// A block of columns that may be anywhere. Those of transposed weights are neighbouring bytes: four
// quads of four of them are taken at once where there are as many.
void PackColumns(const ByteMatrix& weights, int64_t column, int64_t width, int lanes, uint8_t* to) {
  constexpr int64_t kAtOnce = 4;
  const uint32_t flip = weights.flip * 0x01010101u;
  const uint8_t* from = weights.first + column * weights.column_stride;
  const int64_t quads = DivUp(weights.rows, kRowsOfQuad), line = lanes * kRowsOfQuad;
  const bool turns = weights.row_stride == 1;
  const int64_t turned = turns ? weights.rows / (kAtOnce * kRowsOfQuad) * kAtOnce : 0;
  const int64_t columns = width / kAtOnce * kAtOnce;
  for (int64_t quad = 0; quad < turned; quad += kAtOnce) {
    for (int64_t lane = 0; lane < columns; lane += kAtOnce) {
      TurnQuads(from + lane * weights.column_stride + quad * kRowsOfQuad, weights.column_stride,
                flip, line, to + quad * line + lane * kRowsOfQuad);
    }
  }
  for (int64_t lane = 0; lane < width; ++lane) {
    for (int64_t quad = lane < columns ? turned : 0; quad < quads; ++quad) {
      const uint32_t value =
          QuadOf(weights, from + lane * weights.column_stride, quad * kRowsOfQuad) ^ flip;
      std::memcpy(to + quad * line + lane * kRowsOfQuad, &value, kRowsOfQuad);
    }
  }
}

}  // namespace

void PackQuads(const ByteMatrix& weights, int64_t first, int64_t end, int lanes,
               int64_t packed_rows, uint8_t* to) {
  TILEWIRE_CHECK(packed_rows % kRowsOfQuad == 0 && packed_rows >= weights.rows &&
                     (lanes == kMostLanes || lanes == kFewestLanes),
                 "quads of all rows, and vectors of 8 or 16 lanes");
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
  const uint8_t flip = src.flip;
  const auto copy = [from, to, flip](int64_t at) {
    Bytes16 some;
    std::memcpy(&some, from + at, kMostLanes);
    some ^= flip;
    std::memcpy(to + at, &some, kMostLanes);
  };
  if (src.column_stride != 1 || src.columns < kMostLanes) {
    for (int64_t i = 0; i < src.columns; ++i) to[i] = from[i * src.column_stride] ^ flip;
  } else {
    for (int64_t at = 0; at + kMostLanes <= src.columns; at += kMostLanes) copy(at);
    copy(src.columns - kMostLanes);  // again in part
  }
  for (int64_t i = src.columns; i < bytes; ++i) to[i] = 0;
}

}  // namespace tilewire::matmul
