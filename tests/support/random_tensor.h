// SPDX-License-Identifier: Apache-2.0
//
// Deterministic pseudo-random numbers for tests: the same seed gives the same tensor on every
// machine.
#ifndef TESTS_SUPPORT_RANDOM_TENSOR_H_
#define TESTS_SUPPORT_RANDOM_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace tilewire::testing {

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  // Uniform in [low, high).
  float Uniform(float low = -1, float high = 1) {
    return low + (high - low) * (static_cast<float>(Next() >> 40) * 0x1p-24f);
  }

  // Uniform in [low, high], both included.
  int64_t Integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

// Floats in [low, high).
inline void FillUniform(absl::Span<float> values, uint64_t seed, float low = -1, float high = 1) {
  Random random(seed);
  for (float& value : values) value = random.Uniform(low, high);
}

// Small integers in [low, high]: sums and products of them are exact in f32, so that results of
// different orders of addition compare equal.
template <typename T>
void FillIntegers(absl::Span<T> values, uint64_t seed, int64_t low = -4, int64_t high = 4) {
  Random random(seed);
  for (T& value : values) value = static_cast<T>(random.Integer(low, high));
}

// Any bytes at all: what a destination holds before a primitive writes it.
inline void FillGarbage(void* bytes, size_t size, uint64_t seed) {
  Random random(seed);
  auto* out = static_cast<uint8_t*>(bytes);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(random.Next() >> 56);
}

inline std::vector<float> RandomFloats(int64_t count, uint64_t seed, float low = -1,
                                       float high = 1) {
  std::vector<float> values(count);
  FillUniform(absl::MakeSpan(values), seed, low, high);
  return values;
}

inline std::vector<float> RandomIntegers(int64_t count, uint64_t seed, int64_t low = -4,
                                         int64_t high = 4) {
  std::vector<float> values(count);
  FillIntegers(absl::MakeSpan(values), seed, low, high);
  return values;
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_RANDOM_TENSOR_H_
