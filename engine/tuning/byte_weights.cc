// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/byte_weights.h"

#include <algorithm>
#include <cmath>

namespace tilewire::tuning {
namespace {

constexpr float kLeast = 1e-10f;  // smaller scales are not ordinary (IsOrdinary())
constexpr double kMostBias = 1 << 30;
// A sum with it has no bits below the ones: it rounds to the nearest integer, halves to even.
constexpr float kRounding = 1.5f * (1 << 23);

}  // namespace

ByteWeights ToBytes(absl::Span<const float> weights, const Dims& dims, int axis, int largest) {
  const float most = static_cast<float>(largest);
  const int64_t outputs = dims[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  // Elements of one output that are side by side, in the order of the weights.
  const auto for_each_run = [&](auto function) {
    const float* run = weights.data();
    for (const float* const end = run + weights.size(); run != end;) {
      for (int64_t output = 0; output < outputs; ++output, run += inner) function(output, run);
    }
  };
  ByteWeights bytes;
  bytes.scale.assign(outputs, 0);
  for_each_run([&](int64_t output, const float* run) {
    float& scale = bytes.scale[output];
    for (int64_t i = 0; i < inner; ++i) scale = std::max(scale, std::fabs(run[i]));
  });
  for (float& scale : bytes.scale) scale = scale == 0 ? 1 : std::max(scale / most, kLeast);
  bytes.elements.resize(weights.size());
  for_each_run([&](int64_t output, const float* run) {
    const float scale = bytes.scale[output];
    int8_t* const elements = &bytes.elements[run - weights.data()];
    for (int64_t i = 0; i < inner; ++i) {
      const float scaled = std::clamp(run[i] / scale, -most, most);
      elements[i] = static_cast<int8_t>((scaled + kRounding) - kRounding);
    }
  });
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
