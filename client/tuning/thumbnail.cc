// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/thumbnail.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

constexpr int64_t kSide = 64;

void AddInteger(uint32_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) to->push_back(static_cast<char>(value >> (8 * i)));
}

// BMP: rows from the bottom, each padded to four bytes; blue, green, red.
std::string BmpOf(const Image& image) {
  constexpr uint32_t kHeads = 14 + 40;
  const int64_t row = (3 * image.width + 3) / 4 * 4;
  std::string bmp = "BM";
  AddInteger(static_cast<uint32_t>(kHeads + row * image.height), 4, &bmp);
  AddInteger(0, 4, &bmp);
  AddInteger(kHeads, 4, &bmp);
  AddInteger(40, 4, &bmp);
  AddInteger(static_cast<uint32_t>(image.width), 4, &bmp);
  AddInteger(static_cast<uint32_t>(image.height), 4, &bmp);
  AddInteger(1, 2, &bmp);
  AddInteger(24, 2, &bmp);
  for (int i = 0; i < 6; ++i) AddInteger(0, 4, &bmp);
  for (int64_t y = image.height - 1; y >= 0; --y) {
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 2; c >= 0; --c) AddInteger(image.At(y, x, c), 1, &bmp);
    }
    AddInteger(0, static_cast<int>(row - 3 * image.width), &bmp);
  }
  return bmp;
}

}  // namespace

std::string ThumbnailHtml(const Image& image) {
  const int64_t longest = std::max(image.height, image.width);
  if (longest == 0 || image.samples.empty()) return "";
  const auto scaled = [&](int64_t side) {
    return longest <= kSide ? side : std::max<int64_t>(1, side * kSide / longest);
  };
  const Image small =
      ResizeAndCrop(WithChannels(image, 3), scaled(image.height), scaled(image.width));
  return absl::StrCat("<img alt=\"\" width=", small.width, " height=", small.height,
                      " src=\"data:image/bmp;base64,", absl::Base64Escape(BmpOf(small)), "\">");
}

}  // namespace tilewire::client
