// SPDX-License-Identifier: Apache-2.0
//
// The lines of a first layer on matrix tiles. Pixels of the staged source have four bytes
// (integer_stage.h), and a line of 64 bytes is eight neighbouring pixels of each of two rows of
// taps: a step of the reduction, of which wide windows fill most. There is a line for each pixel of
// a row of dst, and each pair of rows that some window has:
//
//   [pair of rows][width of dst][2 rows of taps][8 pixels][4 channels]
//
// Where the window has fewer taps than that, the other bytes meet weights of 0. Immutable.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_ROW_PAIRS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_ROW_PAIRS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/integer/integer_driver.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class RowPairs {
 public:
  static constexpr int64_t kPixelBytes = 4, kRowPixels = 8, kRows = 2;
  static constexpr int64_t kLineBytes = kRows * kRowPixels * kPixelBytes;

  // `staged`: without padding, depth and groups, of up to eight dense taps along the width;
  // `strides` are those of its source, with pixels of four bytes.
  //   kResourceExhausted  the lines take too much memory
  static absl::StatusOr<RowPairs> Create(const Geometry& staged, const ByteStrides& strides);

  int64_t bytes() const { return Pairs() * PairBytes(); }
  // The convolution of the lines: a pair of rows of taps is one tap. Channels count quads.
  Geometry PairedGeometry() const;
  ByteStrides PairedStrides() const;

  // Reads up to 32 bytes after the last pixel of the staged image `from`.
  void Run(const std::byte* from, std::byte* to, const threading::Team& team) const;

 private:
  RowPairs(const Geometry& staged, const ByteStrides& strides)
      : staged_(staged), strides_(strides) {}
  int64_t Step() const;  // rows from one pair to the next
  int64_t Pairs() const;
  int64_t PairBytes() const { return staged_.out[2] * kLineBytes; }
  void RunPair(const std::byte* from, int64_t pair, std::byte* to) const;

  Geometry staged_;
  ByteStrides strides_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_ROW_PAIRS_H_
