// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/row_pairs.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"

namespace tilewire::convolution {

absl::StatusOr<RowPairs> RowPairs::Create(const Geometry& staged, const ByteStrides& strides) {
  TILEWIRE_CHECK(staged.kernel[2] <= kRowPixels && staged.tap_step[2] == 1, "short rows of taps");
  const RowPairs pairs(staged, strides);
  if (!CheckedProduct({pairs.Pairs(), staged.out[2], kLineBytes}))
    return ResourceExhausted("the lines of the windows take too much memory");
  return pairs;
}

// Windows begin a multiple of the stride apart, and their pairs two taps apart.
int64_t RowPairs::Step() const { return std::gcd(staged_.stride[1], kRows * staged_.tap_step[1]); }

int64_t RowPairs::Pairs() const {
  const int64_t taps = DivUp(staged_.kernel[1], kRows);
  const int64_t last =
      (staged_.out[1] - 1) * staged_.stride[1] + (taps - 1) * kRows * staged_.tap_step[1];
  return last / Step() + 1;
}

Geometry RowPairs::PairedGeometry() const {
  Geometry paired = staged_;
  paired.ic = kLineBytes / kQuad;
  paired.in = {1, Pairs(), staged_.out[2]};
  paired.kernel = {1, DivUp(staged_.kernel[1], kRows), 1};
  paired.stride = {1, staged_.stride[1] / Step(), 1};
  paired.tap_step = {1, kRows * staged_.tap_step[1] / Step(), 1};
  return paired;
}

ByteStrides RowPairs::PairedStrides() const {
  ByteStrides strides;
  strides.spatial = {bytes(), PairBytes(), kLineBytes};
  return strides;
}

void RowPairs::Run(const std::byte* from, std::byte* to, const threading::Team& team) const {
  constexpr int64_t kPairsAtOnce = 8;
  team.ParallelFor(DivUp(Pairs(), kPairsAtOnce), [&](int64_t piece) {
    const int64_t first = piece * kPairsAtOnce;
    for (int64_t pair = first; pair < std::min(first + kPairsAtOnce, Pairs()); ++pair)
      RunPair(from, pair, to + pair * PairBytes());
  });
}

// The second row of the last pair may be one that no window has: then any will do.
void RowPairs::RunPair(const std::byte* from, int64_t pair, std::byte* to) const {
  constexpr int64_t kRowBytes = kRowPixels * kPixelBytes;
  const int64_t row = pair * Step();
  const int64_t second = std::min(row + staged_.tap_step[1], staged_.in[1] - 1);
  const std::byte* rows[] = {from + row * strides_.spatial[1], from + second * strides_.spatial[1]};
  const int64_t step = staged_.stride[2] * kPixelBytes;
  for (int64_t pixel = 0; pixel < staged_.out[2]; ++pixel) {
    for (int i : {0, 1})
      std::memcpy(to + pixel * kLineBytes + i * kRowBytes, rows[i] + pixel * step, kRowBytes);
  }
}

}  // namespace tilewire::convolution
