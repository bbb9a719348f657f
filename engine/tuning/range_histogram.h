// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a tensor over many examples, counted in bins of one width, and the ranges that
// 8-bit integers may stand for. A number outside all bins doubles their width: two neighbours
// become one. Each range holds 0. Thread-compatible.
#ifndef ENGINE_TUNING_RANGE_HISTOGRAM_H_
#define ENGINE_TUNING_RANGE_HISTOGRAM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/network/quantization_params.h"

namespace tilewire::tuning {

// low <= 0 <= high
struct Range {
  float low = 0, high = 0;
};

// How a range is found.
//   kExtremes    the lowest and the highest number
//   kPercentile  all but 0.01 % of the numbers on each side, as far as bins tell
//   kSquares     least sum of the squares of all rounding errors and of what is cut off
enum class RangeMethod : uint8_t { kExtremes, kPercentile, kSquares };
constexpr std::array<RangeMethod, 3> kRangeMethods = {
    RangeMethod::kExtremes, RangeMethod::kPercentile, RangeMethod::kSquares};
absl::string_view NameOf(RangeMethod method);

class RangeHistogram {
 public:
  RangeHistogram();

  // Finite numbers.
  void Add(absl::Span<const float> numbers);
  Range Find(RangeMethod method) const;

 private:
  static constexpr int kBins = 4096;  // half of them below 0

  void Widen(float farthest);
  float WidthOf() const { return limit_ / (kBins / 2); }
  float MiddleOf(int bin) const { return (static_cast<float>(bin - kBins / 2) + 0.5f) * WidthOf(); }
  Range Percentile() const;
  Range LeastSquares() const;
  double SquaresWithin(const Range& range) const;

  std::vector<int64_t> counts_;
  float limit_ = 0;    // the bins cover [-limit_, limit_)
  int64_t total_ = 0;  // without zeros, which are exact in every range
  Range extremes_;
};

// The smallest range that holds both.
Range Union(const Range& a, const Range& b);

// The u8 integers of a range: 0 is one of them exactly.
network::QuantizationParams ByteParams(const Range& range);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_RANGE_HISTOGRAM_H_
