// SPDX-License-Identifier: Apache-2.0
//
// PNM by hand, PNG by libpng's simplified interface, JPEG by libjpeg.
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
// libjpeg's header needs FILE from stdio.h.
#include <jerror.h>
#include <jpeglib.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/image.h"

namespace tilewire::client {
namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 26;

absl::Status CheckSize(int64_t height, int64_t width) {
  if (height >= 1 && width >= 1 && height <= kMaxPixels / width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a picture of ", width, "x", height,
                                                 " pixels; at least 1 and at most 2^26 (such as "
                                                 "8192x8192) are read"));
}

// The next number of a PNM header; comments run from '#' to the end of the line. Removes what it
// read.
bool TakeNumber(absl::string_view* bytes, int64_t* number) {
  while (!bytes->empty() && (absl::ascii_isspace((*bytes)[0]) || (*bytes)[0] == '#')) {
    const size_t skip = (*bytes)[0] == '#' ? bytes->find('\n') : 1;
    bytes->remove_prefix(std::min(skip, bytes->size()));
  }
  size_t digits = 0;
  while (digits < bytes->size() && absl::ascii_isdigit((*bytes)[digits])) ++digits;
  const bool ok = absl::SimpleAtoi(bytes->substr(0, digits), number);
  bytes->remove_prefix(digits);
  return ok;
}

// libjpeg ends the process on an error unless error_exit leaves its call by a jump.
struct JpegErrors {
  jpeg_error_mgr manager;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

void OnJpegError(j_common_ptr state) {
  auto* errors = reinterpret_cast<JpegErrors*>(state->err);
  state->err->format_message(state, errors->message);
  longjmp(errors->jump, 1);
}

void OnJpegMessage(j_common_ptr) {}

// libjpeg fills a picture that is cut short with grey and only warns.
void OnJpegWarning(j_common_ptr state, int level) {
  if (level < 0 && state->err->msg_code == JWRN_JPEG_EOF) OnJpegError(state);
}

// Only trivial locals: longjmp() skips destructors. False: `errors` has the message. The first
// call, with `image` still empty, reads the size and stops.
bool RunJpeg(absl::string_view bytes, JpegErrors* errors, Image* image, bool* is_inverted) {
  jpeg_decompress_struct state;
  state.err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = OnJpegError;
  errors->manager.output_message = OnJpegMessage;
  errors->manager.emit_message = OnJpegWarning;
  if (setjmp(errors->jump)) {
    jpeg_destroy_decompress(&state);
    return false;
  }
  jpeg_create_decompress(&state);
  jpeg_mem_src(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&state, TRUE);
  // libjpeg makes no RGB of four inks; programs of Adobe's store them inverted.
  if (state.num_components == 4) {
    state.out_color_space = JCS_CMYK;
  } else {
    state.out_color_space = state.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  }
  if (image->samples.empty()) {
    image->height = state.image_height;
    image->width = state.image_width;
    const bool is_rgb = state.out_color_space == JCS_RGB;
    image->channels = is_rgb ? 3 : state.num_components;
    *is_inverted = state.saw_Adobe_marker != 0;
  } else {
    jpeg_start_decompress(&state);
    while (state.output_scanline < state.output_height) {
      JSAMPROW row = image->samples.data() + state.output_scanline * image->width * image->channels;
      jpeg_read_scanlines(&state, &row, 1);
    }
    jpeg_finish_decompress(&state);
  }
  jpeg_destroy_decompress(&state);
  return true;
}

// Red, green and blue by what cyan, magenta and yellow leave of what black leaves.
Image RgbOfInks(const Image& inks, bool is_inverted) {
  Image image{inks.height, inks.width, 3, {}};
  image.samples.reserve(inks.samples.size() / 4 * 3);
  const auto left = [&](uint8_t ink) { return is_inverted ? ink : 255 - ink; };
  for (size_t i = 0; i + 3 < inks.samples.size(); i += 4) {
    const int black = left(inks.samples[i + 3]);
    for (size_t c = 0; c < 3; ++c)
      image.samples.push_back(
          static_cast<uint8_t>((left(inks.samples[i + c]) * black + 127) / 255));
  }
  return image;
}

}  // namespace

absl::StatusOr<Image> DecodePnm(absl::string_view bytes) {
  Image image;
  image.channels = bytes[1] == '6' ? 3 : 1;
  bytes.remove_prefix(2);
  int64_t maximum = 0;
  if (!TakeNumber(&bytes, &image.width) || !TakeNumber(&bytes, &image.height) ||
      !TakeNumber(&bytes, &maximum) || bytes.empty()) {
    return absl::InvalidArgumentError("the PGM or PPM header is not 'P5 WIDTH HEIGHT MAXIMUM'");
  }
  bytes.remove_prefix(1);  // the one blank before the samples
  if (maximum < 1 || maximum > 255) {
    return absl::InvalidArgumentError(
        absl::StrCat("a PGM or PPM maximum of ", maximum, "; 1 to 255 are read"));
  }
  if (absl::Status status = CheckSize(image.height, image.width); !status.ok()) return status;
  const int64_t size = image.height * image.width * image.channels;
  if (static_cast<int64_t>(bytes.size()) < size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the picture is cut short: ", bytes.size(), " of ", size, " bytes"));
  }
  image.samples.assign(bytes.begin(), bytes.begin() + size);
  for (uint8_t& sample : image.samples) sample = std::min<int64_t>(255, sample * 255 / maximum);
  return image;
}

absl::StatusOr<Image> DecodePng(absl::string_view bytes) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) {
    return absl::InvalidArgumentError(absl::StrCat("PNG: ", png.message));
  }
  Image image{png.height, png.width, (png.format & PNG_FORMAT_FLAG_COLOR) ? 3 : 1, {}};
  if (absl::Status status = CheckSize(image.height, image.width); !status.ok()) {
    png_image_free(&png);
    return status;
  }
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.samples.resize(PNG_IMAGE_SIZE(png));
  const png_color white = {255, 255, 255};  // behind transparent pixels
  if (!png_image_finish_read(&png, &white, image.samples.data(), 0, nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("PNG: ", png.message));
  }
  return image;
}

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes) {
  JpegErrors errors;
  Image image;
  bool is_inverted = false;
  if (!RunJpeg(bytes, &errors, &image, &is_inverted))
    return absl::InvalidArgumentError(absl::StrCat("JPEG: ", errors.message));
  if (absl::Status status = CheckSize(image.height, image.width); !status.ok()) return status;
  image.samples.resize(image.height * image.width * image.channels);
  if (!RunJpeg(bytes, &errors, &image, &is_inverted))
    return absl::InvalidArgumentError(absl::StrCat("JPEG: ", errors.message));
  return image.channels == 4 ? RgbOfInks(image, is_inverted) : image;
}

}  // namespace tilewire::client
