// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/range_histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewire::tuning {
namespace {

constexpr double kCutShare = 1e-4;
constexpr int kShrinkSteps = 64;
constexpr float kLeastLimit = 1e-30f;
constexpr float kLeastScale = 1e-10f;  // smaller ones are not ordinary (IsOrdinary())

}  // namespace

absl::string_view NameOf(RangeMethod method) {
  constexpr absl::string_view kNames[] = {"extremes", "percentile", "squares"};
  return kNames[static_cast<int>(method)];
}

RangeHistogram::RangeHistogram() : counts_(kBins, 0) {}

void RangeHistogram::Widen(float farthest) {
  if (limit_ == 0) {
    // A power of two above the number.
    limit_ = std::max(kLeastLimit, std::ldexp(1.0f, std::min(std::ilogb(farthest) + 1, 127)));
    return;
  }
  while (farthest >= limit_ && limit_ < std::numeric_limits<float>::max() / 4) {
    std::vector<int64_t> wider(kBins, 0);
    for (int bin = 0; bin < kBins; ++bin) wider[kBins / 4 + bin / 2] += counts_[bin];
    counts_ = std::move(wider);
    limit_ *= 2;
  }
}

void RangeHistogram::Add(absl::Span<const float> numbers) {
  float low = extremes_.low, high = extremes_.high;
  for (float number : numbers) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  extremes_ = {low, high};
  const float farthest = std::max(-low, high);
  if (farthest == 0) return;
  if (farthest >= limit_) Widen(farthest);
  const float per_bin = static_cast<float>(kBins / 2) / limit_;
  for (float number : numbers) {
    if (number == 0) continue;
    const int bin = static_cast<int>(std::floor(number * per_bin)) + kBins / 2;
    ++counts_[std::clamp(bin, 0, kBins - 1)];
    ++total_;
  }
}

Range RangeHistogram::Percentile() const {
  const auto cut = static_cast<int64_t>(kCutShare * static_cast<double>(total_));
  int first = 0, last = kBins - 1;
  for (int64_t before = 0; first < kBins && before + counts_[first] <= cut; ++first)
    before += counts_[first];
  for (int64_t after = 0; last > 0 && after + counts_[last] <= cut; --last) after += counts_[last];
  const float low = MiddleOf(first) - WidthOf() / 2, high = MiddleOf(last) + WidthOf() / 2;
  return {std::min(0.0f, std::max(low, extremes_.low)),
          std::max(0.0f, std::min(high, extremes_.high))};
}

double RangeHistogram::SquaresWithin(const Range& range) const {
  const double step = (range.high - range.low) / 255.0;
  double sum = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    if (counts_[bin] == 0) continue;
    const double number = MiddleOf(bin);
    const double outside = number > range.high  ? number - range.high
                           : number < range.low ? range.low - number
                                                : 0;
    const double square = outside > 0 ? outside * outside : step * step / 12;
    sum += static_cast<double>(counts_[bin]) * square;
  }
  return sum;
}

Range RangeHistogram::LeastSquares() const {
  Range best = extremes_;
  double least = SquaresWithin(best);
  // One side after the other, twice, because each decides the width of a step for both.
  for (int round = 0; round < 2; ++round) {
    for (float Range::*side : {&Range::high, &Range::low}) {
      for (int step = 1; step < kShrinkSteps; ++step) {
        Range candidate = best;
        candidate.*side = extremes_.*side * static_cast<float>(step) / kShrinkSteps;
        const double squares = SquaresWithin(candidate);
        if (squares >= least) continue;
        least = squares;
        best = candidate;
      }
    }
  }
  return best;
}

Range RangeHistogram::Find(RangeMethod method) const {
  if (total_ == 0) return extremes_;
  if (method == RangeMethod::kPercentile) return Percentile();
  return method == RangeMethod::kSquares ? LeastSquares() : extremes_;
}

Range Union(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

network::QuantizationParams ByteParams(const Range& range) {
  network::QuantizationParams params;
  const double width = static_cast<double>(range.high) - range.low;
  params.scale = width == 0 ? 1 : std::max(static_cast<float>(width / 255), kLeastScale);
  const double zero = std::nearbyint(-static_cast<double>(range.low) / params.scale);
  params.zero_point = static_cast<int32_t>(std::clamp(zero, 0.0, 255.0));
  return params;
}

}  // namespace tilewire::tuning
