// SPDX-License-Identifier: Apache-2.0
//
// How torchvision prepares pictures for its models, by the name of the model: resized as Pillow
// resizes, bit for bit, the centre cut out, value = (byte / 255 - mean[c]) / std[c]. Pure
// functions. Source: client/python/tilewire/images.py, which a test holds against it.
#ifndef CLIENT_PREPARATION_H_
#define CLIENT_PREPARATION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/image.h"

namespace tilewire::client {

enum class Interpolation : uint8_t { kBilinear, kBicubic };

struct Preparation {
  int64_t resize = 0;  // the length of the shorter side
  int64_t crop = 0;    // the side of the square that is cut out
  Interpolation interpolation = Interpolation::kBilinear;
  Normalization normalization;
};

// Before the model of this name with its default weights. Weights may be named too: "resnet50:V1".
//   kNotFound  none of torchvision's CNNs; the message lists those that are known
absl::StatusOr<Preparation> TorchvisionPreparation(absl::string_view name);

// Resized so that the shorter side has `preparation.resize` pixels, averaged over the area where it
// gets smaller, and the middle square of it, with zeros around it where it is smaller. Only the
// pixels of the square are computed, so that a picture of a million columns and one row takes no
// more memory than others.
Image Prepare(const Image& image, const Preparation& preparation);

}  // namespace tilewire::client

#endif  // CLIENT_PREPARATION_H_
