// SPDX-License-Identifier: Apache-2.0
#include "engine/training/gradient_norm.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/training/blocks.h"

namespace tilewire::training {
namespace {

constexpr int64_t kLanes = 8;    // a number that compilers know makes vectors
constexpr int64_t kAhead = 512;  // elements; memory alone fetches too few lines at a time

template <typename Bounds>
double SumOfSquares(const float* g, int64_t count, const Bounds& bounds) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    __builtin_prefetch(g + i + kAhead);
    for (int64_t k = 0; k < kLanes; ++k) {
      const double one = bounds(g[i + k]);
      lanes[k] += one * one;
    }
  }
  for (; i < count; ++i) {
    const double one = bounds(g[i]);
    lanes[0] += one * one;
  }
  double sum = 0;
  for (double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double NormOf(absl::Span<const absl::Span<const float>> gradients, float value,
              const threading::Team& team) {
  std::vector<int64_t> sizes;
  for (absl::Span<const float> gradient : gradients)
    sizes.push_back(static_cast<int64_t>(gradient.size()));
  const Blocks blocks(sizes);
  std::vector<double> sums(blocks.count());
  WithBounds({.value = value}, [&](const auto& bounds) {
    blocks.ForEach(team, [&](int64_t block, size_t array, int64_t first, int64_t count) {
      sums[block] = SumOfSquares(gradients[array].data() + first, count, bounds);
    });
  });
  double squares = 0;
  for (size_t array = 0; array < gradients.size(); ++array) {
    double of_array = 0;
    for (int64_t block = blocks.BeginOf(array); block < blocks.BeginOf(array + 1); ++block)
      of_array += sums[block];
    squares += of_array;
  }
  return std::sqrt(squares);
}

GradientBounds BoundsOf(absl::Span<const absl::Span<const float>> gradients, double norm,
                        double clip_value, double clip_norm, const threading::Team& team) {
  GradientBounds bounds;
  if (clip_value > 0) bounds.value = static_cast<float>(clip_value);
  if (clip_norm <= 0) return bounds;
  if (clip_value > 0) norm = NormOf(gradients, bounds.value, team);
  if (norm > clip_norm) bounds.scale = static_cast<float>(clip_norm / (norm + 1e-6));
  return bounds;
}

}  // namespace tilewire::training
