// SPDX-License-Identifier: Apache-2.0
//
// A small copy of a picture, for a page that needs nothing else. Pure.
#ifndef CLIENT_TUNING_THUMBNAIL_H_
#define CLIENT_TUNING_THUMBNAIL_H_

#include <string>

#include "client/image.h"

namespace tilewire::client {

// An <img> element that holds the picture (a BMP in base64), of at most 64 pixels a side; empty
// where the picture has no pixels.
std::string ThumbnailHtml(const Image& image);

}  // namespace tilewire::client

#endif  // CLIENT_TUNING_THUMBNAIL_H_
