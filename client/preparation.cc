// SPDX-License-Identifier: Apache-2.0
#include "client/preparation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tilewire::client {
namespace {

struct Statistics {
  float mean[3], std[3];
};
constexpr Statistics kImagenet = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
constexpr Statistics kCentred = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};

struct Preset {
  int64_t resize, crop;
  Interpolation interpolation;
  const Statistics& statistics;
  const char* names;  // of models, or of a model and its weights
};
constexpr Preset kPresets[] = {
    {256, 224, Interpolation::kBilinear, kImagenet,
     "alexnet densenet121 densenet161 densenet169 densenet201 googlenet mnasnet0_5 "
     "mnasnet1_0 mobilenet_v2:V1 mobilenet_v3_large:V1 mobilenet_v3_small regnet_x_16gf:V1 "
     "regnet_x_1_6gf:V1 regnet_x_32gf:V1 regnet_x_3_2gf:V1 regnet_x_400mf:V1 "
     "regnet_x_800mf:V1 regnet_x_8gf:V1 regnet_y_16gf:V1 regnet_y_1_6gf:V1 "
     "regnet_y_32gf:V1 regnet_y_3_2gf:V1 regnet_y_400mf:V1 regnet_y_800mf:V1 "
     "regnet_y_8gf:V1 resnet101:V1 resnet152:V1 resnet18 resnet34 resnet50:V1 "
     "resnext101_32x8d:V1 resnext50_32x4d:V1 shufflenet_v2_x0_5 shufflenet_v2_x1_0 "
     "squeezenet1_0 squeezenet1_1 vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 "
     "vgg19_bn wide_resnet101_2:V1 wide_resnet50_2:V1"},
    {232, 224, Interpolation::kBilinear, kImagenet,
     "convnext_base convnext_large mnasnet0_75 mnasnet1_3 mobilenet_v2 mobilenet_v3_large "
     "regnet_x_16gf regnet_x_1_6gf regnet_x_32gf regnet_x_3_2gf regnet_x_400mf "
     "regnet_x_800mf regnet_x_8gf regnet_y_16gf regnet_y_1_6gf regnet_y_32gf "
     "regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101 resnet152 "
     "resnet50 resnext101_32x8d resnext101_64x4d resnext50_32x4d shufflenet_v2_x1_5 "
     "shufflenet_v2_x2_0 wide_resnet101_2 wide_resnet50_2"},
    {230, 224, Interpolation::kBilinear, kImagenet, "convnext_small"},
    {236, 224, Interpolation::kBilinear, kImagenet, "convnext_tiny"},
    {256, 224, Interpolation::kBicubic, kImagenet, "efficientnet_b0"},
    {256, 240, Interpolation::kBicubic, kImagenet, "efficientnet_b1:V1"},
    {255, 240, Interpolation::kBilinear, kImagenet, "efficientnet_b1"},
    {288, 288, Interpolation::kBicubic, kImagenet, "efficientnet_b2"},
    {320, 300, Interpolation::kBicubic, kImagenet, "efficientnet_b3"},
    {384, 380, Interpolation::kBicubic, kImagenet, "efficientnet_b4"},
    {456, 456, Interpolation::kBicubic, kImagenet, "efficientnet_b5"},
    {528, 528, Interpolation::kBicubic, kImagenet, "efficientnet_b6"},
    {600, 600, Interpolation::kBicubic, kImagenet, "efficientnet_b7"},
    {384, 384, Interpolation::kBilinear, kImagenet, "efficientnet_v2_s"},
    {480, 480, Interpolation::kBilinear, kImagenet, "efficientnet_v2_m"},
    {480, 480, Interpolation::kBicubic, kCentred, "efficientnet_v2_l"},
    {342, 299, Interpolation::kBilinear, kImagenet, "inception_v3"},
};

Preparation Of(const Preset& preset) {
  const auto& [mean, std] = preset.statistics;
  return {preset.resize,
          preset.crop,
          preset.interpolation,
          {.mean = {mean, mean + 3}, .std = {std, std + 3}}};
}

const Preset* Find(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    const std::vector<absl::string_view> names = absl::StrSplit(preset.names, ' ');
    if (absl::c_linear_search(names, name)) return &preset;
  }
  return nullptr;
}

double Weight(double x, Interpolation interpolation) {
  x = std::fabs(x);
  if (interpolation == Interpolation::kBilinear) return std::max(0.0, 1.0 - x);
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

// The inputs around an output's place, and their weights in fixed point, as Pillow computes.
constexpr int kBits = 22;
struct FixedTaps {
  int64_t first = 0;
  std::vector<int64_t> weights;
};

// Neighbouring pixels of a side.
struct Span {
  int64_t first = 0, count = 0;
  int64_t end() const { return first + count; }
};

FixedTaps TapsAt(int64_t o, int64_t in, double scale, Interpolation interpolation) {
  const double stretch = std::max(scale, 1.0);
  const double reach = (interpolation == Interpolation::kBilinear ? 1.0 : 2.0) * stretch;
  const double place = (static_cast<double>(o) + 0.5) * scale;
  FixedTaps taps{std::max<int64_t>(static_cast<int64_t>(place - reach + 0.5), 0), {}};
  const int64_t end = std::min(static_cast<int64_t>(place + reach + 0.5), in);
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = taps.first; i < end; ++i) {
    weights.push_back(
        Weight((static_cast<double>(i) - place + 0.5) * (1.0 / stretch), interpolation));
    sum += weights.back();
  }
  for (const double weight : weights) {
    const double share = weight / sum;
    taps.weights.push_back(static_cast<int64_t>(share * (1 << kBits) + std::copysign(0.5, share)));
  }
  return taps;
}

// A side of `in` pixels resized to `out`, and the part of it that is kept.
struct Side {
  int64_t in, out;
  Span kept;
};

std::vector<FixedTaps> TapsOf(const Side& side, Interpolation interpolation) {
  const double scale = static_cast<double>(side.in) / static_cast<double>(side.out);
  std::vector<FixedTaps> all;
  for (int64_t o = side.kept.first; o < side.kept.end(); ++o)
    all.push_back(TapsAt(o, side.in, scale, interpolation));
  return all;
}

// The inputs that any of `taps`, which are in order, reads.
Span ReadBy(const std::vector<FixedTaps>& taps) {
  Span read{taps.front().first, 0};
  for (const FixedTaps& at : taps) {
    const int64_t end = at.first + static_cast<int64_t>(at.weights.size());
    read.count = std::max(read.count, end - read.first);
  }
  return read;
}

uint8_t Rounded(int64_t sum) {
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + (1 << (kBits - 1))) >> kBits, 0, 255));
}

// The given rows of the picture, with as many columns as there are taps.
Image WithColumns(const Image& image, Span rows, const std::vector<FixedTaps>& taps) {
  Image result{rows.count, static_cast<int64_t>(taps.size()), image.channels, {}};
  for (int64_t y = rows.first; y < rows.end(); ++y) {
    for (const FixedTaps& at : taps) {
      for (int64_t c = 0; c < image.channels; ++c) {
        int64_t sum = 0;
        for (size_t k = 0; k < at.weights.size(); ++k)
          sum += at.weights[k] * image.At(y, at.first + static_cast<int64_t>(k), c);
        result.samples.push_back(Rounded(sum));
      }
    }
  }
  return result;
}

// As many rows as there are taps, whose inputs are counted from row `first` of the picture on.
Image WithRows(const Image& image, int64_t first, const std::vector<FixedTaps>& taps) {
  Image result{static_cast<int64_t>(taps.size()), image.width, image.channels, {}};
  for (const FixedTaps& at : taps) {
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        int64_t sum = 0;
        for (size_t k = 0; k < at.weights.size(); ++k)
          sum += at.weights[k] * image.At(at.first - first + static_cast<int64_t>(k), x, c);
        result.samples.push_back(Rounded(sum));
      }
    }
  }
  return result;
}

// The middle `wanted` of `have` pixels, which may begin before the first. Half a pixel goes to the
// even side, as Python rounds.
Span Middle(int64_t have, int64_t wanted) {
  if (have < wanted) return {-((wanted - have) / 2), wanted};
  return {static_cast<int64_t>(std::nearbyint(static_cast<double>(have - wanted) / 2)), wanted};
}

// The part of `span` that lies within `size` pixels.
Span Inside(Span span, int64_t size) {
  const int64_t first = std::max<int64_t>(span.first, 0);
  return {first, std::min(span.end(), size) - first};
}

// The picture in a frame of zeros, with its first pixel at (top, left).
Image Framed(const Image& image, int64_t height, int64_t width, int64_t top, int64_t left) {
  Image result{height, width, image.channels, {}};
  result.samples.resize(height * width * image.channels);
  const int64_t row = image.width * image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    std::copy_n(image.samples.begin() + y * row, row,
                result.samples.begin() + ((top + y) * width + left) * image.channels);
  }
  return result;
}

}  // namespace

absl::StatusOr<Preparation> TorchvisionPreparation(absl::string_view name) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  const auto& [model, weights] = parts;
  const bool has_two = Find(absl::StrCat(model, ":V1")) != nullptr;
  if (const Preset* usual = Find(model);
      usual != nullptr && (weights.empty() || weights == (has_two ? "V2" : "V1")))
    return Of(*usual);
  if (const Preset* named = Find(name); named != nullptr) return Of(*named);
  const std::string all = absl::StrJoin(
      kPresets, " ", [](std::string* out, const Preset& one) { absl::StrAppend(out, one.names); });
  return absl::NotFoundError(absl::StrCat("no preparation for '", name, "'; there is one for ",
                                          absl::StrJoin(absl::StrSplit(all, ' '), ", ")));
}

Image Prepare(const Image& image, const Preparation& preparation) {
  const int64_t side = preparation.resize, crop = preparation.crop;
  const bool is_wide = image.height <= image.width;
  const int64_t shorter = is_wide ? image.height : image.width;
  const int64_t longer = is_wide ? image.width : image.height;
  // As Python divides: to a double, then cut off.
  const auto other =
      static_cast<int64_t>(static_cast<double>(side * longer) / static_cast<double>(shorter));
  const int64_t height = is_wide ? side : other, width = is_wide ? other : side;
  const Span rows = Middle(height, crop), columns = Middle(width, crop);
  const Side down{image.height, height, Inside(rows, height)};
  const Side across{image.width, width, Inside(columns, width)};
  const std::vector<FixedTaps> row_taps = TapsOf(down, preparation.interpolation);
  const Span read = ReadBy(row_taps);
  const Image narrow = WithColumns(image, read, TapsOf(across, preparation.interpolation));
  return Framed(WithRows(narrow, read.first, row_taps), crop, crop, down.kept.first - rows.first,
                across.kept.first - columns.first);
}

}  // namespace tilewire::client
