// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/byte_weights.h"

#include <algorithm>
#include <cmath>

namespace tilewire::tuning {
namespace {

constexpr float kMost = 127;
constexpr float kLeast = 1e-10f;  // smaller scales are not ordinary (IsOrdinary())
constexpr double kMostBias = 1 << 30;

}  // namespace

ByteWeights ToBytes(absl::Span<const float> weights, const Dims& dims, int axis) {
  const int64_t outputs = dims[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  const auto output_of = [&](size_t i) { return static_cast<int64_t>(i) / inner % outputs; };
  ByteWeights bytes;
  bytes.scale.assign(outputs, 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    float& largest = bytes.scale[output_of(i)];
    largest = std::max(largest, std::fabs(weights[i]));
  }
  for (float& scale : bytes.scale) scale = scale == 0 ? 1 : std::max(scale / kMost, kLeast);
  bytes.elements.reserve(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const float scaled = std::nearbyint(weights[i] / bytes.scale[output_of(i)]);
    bytes.elements.push_back(static_cast<int8_t>(std::clamp(scaled, -kMost, kMost)));
  }
  return bytes;
}

std::optional<std::vector<int32_t>> ToIntegers(absl::Span<const float> biases, float src_scale,
                                               absl::Span<const float> scale) {
  std::vector<int32_t> integers;
  for (size_t i = 0; i < biases.size(); ++i) {
    // The product as the file has it, in f32.
    const double scaled = std::nearbyint(biases[i] / static_cast<double>(src_scale * scale[i]));
    if (!(std::fabs(scaled) <= kMostBias)) return std::nullopt;
    integers.push_back(static_cast<int32_t>(scaled));
  }
  return integers;
}

}  // namespace tilewire::tuning
