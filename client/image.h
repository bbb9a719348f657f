// SPDX-License-Identifier: Apache-2.0
//
// Pictures from files to model inputs: decode, resize and crop, scale to floats.
//
//   value = (byte * scale - mean[c]) / std[c]
//
// Formats: PGM and PPM (binary, P5 and P6, one byte a sample), PNG, JPEG; found by content, not by
// name.
#ifndef CLIENT_IMAGE_H_
#define CLIENT_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"

namespace tilewire::client {

// Rows from the top; a pixel's samples (grey, or red, green, blue) lie together.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> samples;
  uint8_t At(int64_t y, int64_t x, int64_t c) const {
    return samples[(y * width + x) * channels + c];
  }
};

// kInvalidArgument  not a picture of these formats, cut short, or larger than 2^26 pixels
absl::StatusOr<Image> DecodeImage(absl::string_view bytes);
absl::StatusOr<Image> DecodePnm(absl::string_view bytes);
absl::StatusOr<Image> DecodePng(absl::string_view bytes);
absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes);

// Grey to colour by repeating, colour to grey by Rec. 601 luma. `channels` is 1 or 3.
Image WithChannels(const Image& image, int64_t channels);

// The largest centred part of the picture's own shape height:width, resized (bilinear; averaged
// over the area when it gets smaller) to that size.
Image ResizeAndCrop(const Image& image, int64_t height, int64_t width);

struct Normalization {
  float scale = 1.0f / 255;
  std::vector<float> mean = {0}, std = {1};  // one for all channels, or one each
};

// The picture as one row of a batch, in `layout`; bytes of UINT8 or of FP32 values.
//   kInvalidArgument  another datatype, or mean and std that do not fit the channels
absl::StatusOr<std::string> ToInput(const Image& image, absl::string_view datatype, Layout layout,
                                    const Normalization& normalization);

// The picture as lines of characters: the denser, the further a pixel is from the mean colour of
// the border.
std::string TextPicture(const Image& image);

}  // namespace tilewire::client

#endif  // CLIENT_IMAGE_H_
