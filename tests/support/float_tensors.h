// SPDX-License-Identifier: Apache-2.0
//
// Tensors of f32 as vectors, for tests: as bytes, with the channels last, and compared.
#ifndef TESTS_SUPPORT_FLOAT_TENSORS_H_
#define TESTS_SUPPORT_FLOAT_TENSORS_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/dims.h"

namespace tilewire::testing {

inline absl::string_view BytesOf(const std::vector<float>& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.size() * sizeof(float)};
}

inline std::vector<float> FloatsOf(const AlignedBuffer& bytes) {
  std::vector<float> floats(bytes.size() / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

// From row-major [N, C, spatial...] to [N, spatial..., C]; below rank 3 there is nothing to move.
inline std::vector<float> ChannelsLast(const std::vector<float>& nchw, const Dims& dims) {
  if (dims.size() < 3) return nchw;
  const int64_t images = dims[0], channels = dims[1];
  const int64_t space = static_cast<int64_t>(nchw.size()) / (channels * images);
  std::vector<float> nhwc(nchw.size());
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t s = 0; s < space; ++s) {
        nhwc[(n * space + s) * channels + c] = nchw[(n * channels + c) * space + s];
      }
    }
  }
  return nhwc;
}

// |got - want| / |want|; infinite where the sizes differ or `got` is not finite.
template <typename T>
double RelativeL2(const std::vector<float>& got, const std::vector<T>& want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (got.size() != want.size()) return kInfinite;
  double error = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double exact = want[i], difference = got[i] - exact;
    error += difference * difference;
    norm += exact * exact;
  }
  const double ratio = std::sqrt(norm > 0 ? error / norm : error);
  return std::isfinite(ratio) ? ratio : kInfinite;
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_FLOAT_TENSORS_H_
