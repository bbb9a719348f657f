// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/bf16/bf16_rows.h"

#include <algorithm>
#include <cstring>

#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::convolution {

absl::StatusOr<Bf16Rows> Bf16Rows::Create(absl::string_view name, const Geometry& geometry,
                                          const ActivationStrides& src) {
  Bf16Rows rows(geometry, src);
  if (!CheckedProduct({geometry.ic, geometry.in[1], rows.RowNumbers(), kNumberBytes}))
    return ResourceExhausted("the rounded copy of src is too large");
  ABSL_ASSIGN_OR_RETURN(rows.rounding_, jit::Compile<Bf16Rounding>(name));
  return rows;
}

int64_t Bf16Rows::TapPairs() const { return DivUp(geometry_.kernel[2], kPairNumbers); }

// Src is rounded in whole lines, and windows read to the end of the last one's pairs.
int64_t Bf16Rows::RowNumbers() const {
  const int64_t read = (geometry_.out[2] + TapPairs() - 1) * kPairNumbers;
  const int64_t written = geometry_.pad[2] + RoundUp(geometry_.in[2], kBf16LineNumbers);
  return RoundUp(std::max(read, written), kBf16LineNumbers);
}

Geometry Bf16Rows::CopiedGeometry() const {
  Geometry copied = geometry_;
  copied.kernel[2] = TapPairs();
  copied.in[2] = geometry_.out[2] + TapPairs() - 1;
  copied.stride[2] = 1;
  copied.pad[2] = 0;
  return copied;
}

ActivationStrides Bf16Rows::CopiedStrides() const {
  const int64_t row = RowNumbers() / kPairNumbers;
  ActivationStrides strides;
  strides.spatial = {geometry_.in[1] * row, row, 1};
  strides.channel = geometry_.in[1] * row;
  strides.block = strides.group = strides.image = geometry_.ic * strides.channel;
  return strides;
}

void Bf16Rows::Run(const float* src, int64_t images, std::byte* to,
                   const threading::Team& team) const {
  constexpr int64_t kRowsAtOnce = 16;
  const int64_t height = geometry_.in[1], pieces = DivUp(height, kRowsAtOnce);
  const ActivationStrides copied = CopiedStrides();
  team.ParallelFor(images * geometry_.ic * pieces, [&](int64_t index) {
    const int64_t first = index % pieces * kRowsAtOnce, channel = index / pieces % geometry_.ic;
    const int64_t image = index / pieces / geometry_.ic;
    const float* from = src + image * src_.image + channel * src_.channel;
    std::byte* rows = to + (image * copied.image + channel * copied.channel) * kPairBytes;
    for (int64_t row = first; row < std::min(first + kRowsAtOnce, height); ++row)
      RunRow(from + row * src_.spatial[1], rows + row * copied.spatial[1] * kPairBytes);
  });
}

// Pixels that are not neighbours are gathered first, so many at a time.
void Bf16Rows::RunRow(const float* src, std::byte* to) const {
  constexpr int64_t kAtOnce = 8 * kBf16LineNumbers;
  const int64_t left = geometry_.pad[2], width = geometry_.in[2];
  std::memset(to, 0, left * kNumberBytes);
  const int64_t end = left + RoundUp(width, kBf16LineNumbers);
  std::memset(to + end * kNumberBytes, 0, (RowNumbers() - end) * kNumberBytes);
  to += left * kNumberBytes;
  if (src_.spatial[2] == 1) return Round(src, width, to);
  alignas(kLineBytes) float gathered[kAtOnce];
  for (int64_t first = 0; first < width; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, width - first);
    for (int64_t i = 0; i < count; ++i) gathered[i] = src[(first + i) * src_.spatial[2]];
    Round(gathered, count, to + first * kNumberBytes);
  }
}

// A line that is not full ends in zeros.
void Bf16Rows::Round(const float* from, int64_t count, std::byte* to) const {
  const auto round = rounding_->entry<Bf16RoundingFunction>();
  const auto run = [&](int64_t first, int64_t lines, int64_t numbers) {
    if (lines == 0) return;
    const auto* src = reinterpret_cast<const std::byte*>(from + first);
    const Bf16RoundingArgs args = {.src = src,
                                   .second = src + kLineBytes,
                                   .dst = to + first * kNumberBytes,
                                   .src_step = 2 * kLineBytes,
                                   .lines = lines,
                                   .first_mask = Bf16Rounding::MaskOf(numbers, 0),
                                   .second_mask = Bf16Rounding::MaskOf(numbers, 16)};
    round(&args);
  };
  const int64_t whole = count / kBf16LineNumbers, rest = count % kBf16LineNumbers;
  run(0, whole, kBf16LineNumbers);
  run(whole * kBf16LineNumbers, rest == 0 ? 0 : 1, rest);
}

}  // namespace tilewire::convolution
