// SPDX-License-Identifier: Apache-2.0
#include "client/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

// Which source samples, with which weights, make each of `out` samples from [begin, begin + extent)
// of `in` ones.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> ResizeTaps(int64_t in, int64_t out, double begin, double extent) {
  const double step = extent / out;
  const double radius =
      std::max(1.0, step);  // of the triangle filter: wider when the picture shrinks
  std::vector<Taps> taps(out);
  for (int64_t i = 0; i < out; ++i) {
    const double centre = begin + (i + 0.5) * step - 0.5;
    const int64_t low = std::max<int64_t>(0, std::ceil(centre - radius));
    const int64_t high = std::min<int64_t>(in - 1, std::floor(centre + radius));
    taps[i].first = std::min(low, in - 1);
    double total = 0;
    for (int64_t j = taps[i].first; j <= std::max(high, taps[i].first); ++j) {
      const double weight = std::max(0.0, 1 - std::abs(j - centre) / radius);
      taps[i].weights.push_back(static_cast<float>(weight));
      total += weight;
    }
    for (float& weight : taps[i].weights)
      weight = total > 0 ? weight / total : 1.0f / taps[i].weights.size();
  }
  return taps;
}

// Columns first, so that each source row from `first` to `last` is read once:
// [last - first + 1, out_width, channels] floats.
std::vector<float> ResizeRows(const Image& image, int64_t first, int64_t last,
                              const std::vector<Taps>& columns) {
  std::vector<float> rows;
  rows.reserve((last - first + 1) * columns.size() * image.channels);
  for (int64_t y = first; y <= last; ++y) {
    for (const Taps& taps : columns) {
      for (int64_t c = 0; c < image.channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k)
          sum += taps.weights[k] * image.At(y, taps.first + k, c);
        rows.push_back(sum);
      }
    }
  }
  return rows;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "P5") || absl::StartsWith(bytes, "P6")) return DecodePnm(bytes);
  if (absl::StartsWith(bytes, "\x89PNG")) return DecodePng(bytes);
  if (absl::StartsWith(bytes, "\xFF\xD8")) return DecodeJpeg(bytes);
  return absl::InvalidArgumentError("not a PGM (P5), PPM (P6), PNG or JPEG picture");
}

Image WithChannels(const Image& image, int64_t channels) {
  if (image.channels == channels) return image;
  Image result{image.height, image.width, channels, {}};
  for (int64_t i = 0; i < image.height * image.width; ++i) {
    const uint8_t* pixel = &image.samples[i * image.channels];
    if (channels == 3) {
      result.samples.insert(result.samples.end(), 3, pixel[0]);
    } else {
      result.samples.push_back(
          std::lround(0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2]));
    }
  }
  return result;
}

Image ResizeAndCrop(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  const double scale = std::min(static_cast<double>(image.height) / height,
                                static_cast<double>(image.width) / width);
  const double rows = scale * height, columns = scale * width;
  const auto down = ResizeTaps(image.height, height, (image.height - rows) / 2, rows);
  const auto across = ResizeTaps(image.width, width, (image.width - columns) / 2, columns);
  const int64_t first = down.front().first;
  const int64_t last = down.back().first + static_cast<int64_t>(down.back().weights.size()) - 1;
  const std::vector<float> narrow = ResizeRows(image, first, last, across);
  Image result{height, width, image.channels, {}};
  const int64_t row_size = width * image.channels;
  for (const Taps& taps : down) {
    for (int64_t i = 0; i < row_size; ++i) {
      float sum = 0;
      for (size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * narrow[(taps.first - first + k) * row_size + i];
      result.samples.push_back(static_cast<uint8_t>(std::clamp(std::lround(sum), 0l, 255l)));
    }
  }
  return result;
}

absl::StatusOr<std::string> ToInput(const Image& image, absl::string_view datatype, Layout layout,
                                    const Normalization& normalization) {
  for (const auto* values : {&normalization.mean, &normalization.std}) {
    if (values->size() != 1 && static_cast<int64_t>(values->size()) != image.channels) {
      return absl::InvalidArgumentError(
          absl::StrCat("mean and std take 1 or ", image.channels, " values, not ", values->size()));
    }
  }
  if (datatype != "FP32" && datatype != "UINT8") {
    return absl::InvalidArgumentError(absl::StrCat(
        "a picture becomes FP32 or UINT8; the model wants ", datatype, ": give a raw tensor file"));
  }
  const int64_t pixels = image.height * image.width;
  const int64_t size = datatype == "FP32" ? sizeof(float) : 1;
  std::string bytes(image.samples.size() * size, '\0');
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < image.channels; ++c) {
      const uint8_t sample = image.samples[i * image.channels + c];
      const int64_t to = layout == Layout::kNhwc ? i * image.channels + c : c * pixels + i;
      if (size == 1) {
        bytes[to] = static_cast<char>(sample);
        continue;
      }
      const float mean = normalization.mean[normalization.mean.size() == 1 ? 0 : c];
      const float std = normalization.std[normalization.std.size() == 1 ? 0 : c];
      const float value = (sample * normalization.scale - mean) / std;
      std::memcpy(&bytes[to * size], &value, size);
    }
  }
  return bytes;
}

}  // namespace tilewire::client
