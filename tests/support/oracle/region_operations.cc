// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

// One direction of a region.
struct Stretch {
  double start, bin;
  int64_t samples;

  double At(int64_t b, int64_t sample) const {
    return start + (static_cast<double>(b) +
                    (static_cast<double>(sample) + 0.5) / static_cast<double>(samples)) *
                       bin;
  }
};

Stretch StretchOf(const network::RoiAlign& pooling, double low, double high, int64_t bins) {
  const double offset = pooling.aligned ? 0.5 : 0;
  double size = (high - low) * pooling.scale;
  if (!pooling.aligned) size = std::max(size, 1.0);
  const double bin = size / static_cast<double>(bins);
  const int64_t samples = pooling.samples_per_bin > 0
                              ? pooling.samples_per_bin
                              : static_cast<int64_t>(std::max(0.0, std::ceil(bin)));
  return {low * pooling.scale - offset, bin, samples};
}

// The four weighted pixels around a place; zeros outside.
Elements Around(const Shaped& src, Dims at, double y, double x) {
  const double height = static_cast<double>(src.dims[2]), width = static_cast<double>(src.dims[3]);
  if (y < -1 || y > height || x < -1 || x > width) return {0, 0, 0, 0};
  const double row = std::clamp(y, 0.0, height - 1), column = std::clamp(x, 0.0, width - 1);
  Elements parts;
  for (double r : {std::floor(row), std::floor(row) + 1}) {
    for (double c : {std::floor(column), std::floor(column) + 1}) {
      at[2] = static_cast<int64_t>(std::min(r, height - 1));
      at[3] = static_cast<int64_t>(std::min(c, width - 1));
      parts.push_back((1 - std::abs(row - r)) * (1 - std::abs(column - c)) * src.AtBroadcast(at));
    }
  }
  return parts;
}

}  // namespace

Elements Compute(const network::RoiAlign& pooling, const Operands& operands) {
  const Shaped& src = operands.srcs[0];
  const Elements &rois = operands.srcs[1].elements, &batches = operands.srcs[2].elements;
  return ForEach(operands.dst, [&](const Dims& index) {
    const double* roi = rois.data() + index[0] * 4;
    const Stretch high = StretchOf(pooling, roi[1], roi[3], operands.dst[2]);
    const Stretch wide = StretchOf(pooling, roi[0], roi[2], operands.dst[3]);
    const Dims image = {static_cast<int64_t>(batches[index[0]]), index[1], 0, 0};
    double sum = 0, largest = 0;
    for (int64_t i = 0; i < high.samples; ++i) {
      for (int64_t j = 0; j < wide.samples; ++j) {
        const Elements parts = Around(src, image, high.At(index[2], i), wide.At(index[3], j));
        const double most = *std::max_element(parts.begin(), parts.end());
        largest = i + j == 0 ? most : std::max(largest, most);
        for (double part : parts) sum += part;
      }
    }
    const auto samples = static_cast<double>(std::max<int64_t>(1, high.samples * wide.samples));
    return pooling.takes_maximum ? largest : sum / samples;
  });
}

}  // namespace tilewire::testing
