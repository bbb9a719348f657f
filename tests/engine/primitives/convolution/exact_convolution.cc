// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/convolution/exact_convolution.h"

#include <variant>

#include "engine/functions/function.h"

namespace tilewire::testing {
namespace {

// One image's channel is a plane of `size`; one output in double precision.
double ExactSum(const ConvolutionCase& shape, const Contents& contents, int64_t n, int64_t o,
                int64_t y, int64_t x) {
  const int64_t height = shape.in[0], width = shape.in[1];
  double sum = shape.bias ? contents.bias[o] : 0;
  for (int64_t i = 0; i < shape.ic; ++i) {
    const float* src = &contents.src[(n * shape.ic + i) * height * width];
    const float* weights = &contents.weights[(o * shape.ic + i) * 9];
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t row = y + tap / 3 - shape.left[0], column = x + tap % 3 - shape.left[1];
      if (row < 0 || row >= height || column < 0 || column >= width) continue;
      sum += static_cast<double>(src[row * width + column]) * weights[tap];
    }
  }
  return sum;
}

double Applied(const std::vector<PostOp>& chain, double value, float before, int64_t channel) {
  for (const PostOp& entry : chain) {
    if (const auto* sum = std::get_if<SumPostOp>(&entry)) {
      value += static_cast<double>(sum->scale) * before;
    } else if (const auto* prelu = std::get_if<PReluPostOp>(&entry)) {
      if (value < 0) value *= prelu->slopes[channel];
    } else {
      const auto& eltwise = std::get<EltwisePostOp>(entry);
      value = eltwise.scale * functions::EltwiseScalar(eltwise.op, static_cast<float>(value));
    }
  }
  return value;
}

}  // namespace

std::vector<double> ExactConvolution(const ConvolutionCase& shape, const Contents& contents,
                                     const std::vector<PostOp>& chain) {
  const Dims dst = shape.DstDims();
  std::vector<double> values;
  for (int64_t n = 0; n < dst[0]; ++n) {
    for (int64_t o = 0; o < dst[1]; ++o) {
      for (int64_t pixel = 0; pixel < dst[2] * dst[3]; ++pixel) {
        const double sum = ExactSum(shape, contents, n, o, pixel / dst[3], pixel % dst[3]);
        values.push_back(Applied(chain, sum, contents.dst[values.size()], o));
      }
    }
  }
  return values;
}

}  // namespace tilewire::testing
