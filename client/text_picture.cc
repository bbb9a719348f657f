// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "client/image.h"

namespace tilewire::client {
namespace {

std::vector<double> BorderMean(const Image& image) {
  std::vector<double> mean(image.channels, 0);
  int64_t count = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (y > 0 && y + 1 < image.height && x > 0 && x + 1 < image.width) continue;
      for (int64_t c = 0; c < image.channels; ++c) mean[c] += image.At(y, x, c);
      ++count;
    }
  }
  for (double& value : mean) value /= std::max<int64_t>(1, count);
  return mean;
}

}  // namespace

std::string TextPicture(const Image& image) {
  static constexpr char kInk[] = " .:-=+*#%@";
  const std::vector<double> paper = BorderMean(image);
  std::vector<double> distances;
  for (int64_t i = 0; i < image.height * image.width; ++i) {
    double sum = 0;
    for (int64_t c = 0; c < image.channels; ++c)
      sum += std::pow(image.samples[i * image.channels + c] - paper[c], 2);
    distances.push_back(std::sqrt(sum));
  }
  const double largest =
      distances.empty() ? 0 : *std::max_element(distances.begin(), distances.end());
  std::string text;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      const double ink = largest > 0 ? distances[y * image.width + x] / largest : 0;
      // Twice, for a character is about twice as high as wide.
      text.append(2, kInk[std::min(9, static_cast<int>(ink * 10))]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace tilewire::client
