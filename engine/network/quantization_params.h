// SPDX-License-Identifier: Apache-2.0
//
// How 8-bit integers represent real numbers:
//
//   real    = scale * (integer - zero_point)
//   integer = saturate(round(real / scale) + zero_point)     halves round to even
//
// The functions hold integers as floats, exactly. Pure functions; thread-safe.
// Source: ONNX, QuantizeLinear.
#ifndef ENGINE_NETWORK_QUANTIZATION_PARAMS_H_
#define ENGINE_NETWORK_QUANTIZATION_PARAMS_H_

#include <cmath>
#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire::network {

struct QuantizationParams {
  float scale = 1;  // positive, finite
  int32_t zero_point = 0;
  bool operator==(const QuantizationParams&) const = default;
};

// The range of kU8; for any other type that of kS8.
constexpr float LowestOf(DataType type) { return type == DataType::kU8 ? 0 : -128; }
constexpr float HighestOf(DataType type) { return type == DataType::kU8 ? 255 : 127; }

// NaN maps to the lowest integer.
inline float QuantizeElement(float real, const QuantizationParams& params, DataType type) {
  const float zero = static_cast<float>(params.zero_point);
  const float lowest = LowestOf(type) - zero, highest = HighestOf(type) - zero;
  float scaled = real / params.scale;
  scaled = scaled > lowest ? scaled : lowest;
  scaled = scaled < highest ? scaled : highest;
  return std::nearbyint(scaled) + zero;
}

inline float DequantizeElement(float integer, const QuantizationParams& params) {
  return (integer - static_cast<float>(params.zero_point)) * params.scale;
}

inline bool HoldsZeroPoint(DataType type, const QuantizationParams& params) {
  return static_cast<float>(params.zero_point) >= LowestOf(type) &&
         static_cast<float>(params.zero_point) <= HighestOf(type);
}

// So many products of differences of two bytes have sums of 32 bits.
constexpr int64_t kMostProductsOfBytes = INT32_MAX / (255 * 255);

// Whether products and quotients of three such scales are far from the limits of f32.
inline bool IsOrdinary(float scale) { return scale >= 1e-12f && scale <= 1e12f; }

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_QUANTIZATION_PARAMS_H_
