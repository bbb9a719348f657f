// SPDX-License-Identifier: Apache-2.0
#include "client/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <stdio.h>
// libjpeg's header needs FILE from stdio.h.
#include <jpeglib.h>

#include <cmath>
#include <cstring>

#include "client/scores.h"
#include "client/tensor_values.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

// A gradient: every sample can be told from its neighbours.
Image Gradient(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t i = 0; i < height * width * channels; ++i) {
    image.samples.push_back(static_cast<uint8_t>(i % 251));
  }
  return image;
}

std::string EncodePng(const Image& image) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.height = image.height;
  png.width = image.width;
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&png, nullptr, &size, 0, image.samples.data(), 0, nullptr);
  std::string bytes(size, '\0');
  png_image_write_to_memory(&png, bytes.data(), &size, 0, image.samples.data(), 0, nullptr);
  return bytes;
}

std::string EncodeJpeg(const Image& image, bool has_adobe_marker = false) {
  jpeg_compress_struct state;
  jpeg_error_mgr errors;
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &buffer, &size);
  state.image_width = image.width;
  state.image_height = image.height;
  state.input_components = image.channels;
  state.in_color_space = image.channels == 4   ? JCS_CMYK
                         : image.channels == 3 ? JCS_RGB
                                               : JCS_GRAYSCALE;
  jpeg_set_defaults(&state);
  if (image.channels == 4) state.write_Adobe_marker = has_adobe_marker;
  jpeg_set_quality(&state, 100, TRUE);
  jpeg_start_compress(&state, TRUE);
  for (int64_t y = 0; y < image.height; ++y) {
    auto* row = const_cast<uint8_t*>(&image.samples[y * image.width * image.channels]);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  std::string bytes(reinterpret_cast<char*>(buffer), size);
  free(buffer);
  jpeg_destroy_compress(&state);
  return bytes;
}

TEST(DecodeImage, PnmWithCommentsAndSmallMaximum) {
  const auto grey = DecodeImage("P5\n# a comment\n2 1\n15\n\x01\x0F");
  ASSERT_THAT(grey, IsOk());
  EXPECT_EQ(grey->width, 2);
  EXPECT_THAT(grey->samples, ElementsAre(17, 255));
  const auto colour = DecodeImage("P6 1 1 255 abc");
  ASSERT_THAT(colour, IsOk());
  EXPECT_THAT(colour->samples, ElementsAre('a', 'b', 'c'));
}

TEST(DecodeImage, PngIsExact) {
  for (const int64_t channels : {1, 3}) {
    const Image image = Gradient(7, 5, channels);
    const auto decoded = DecodeImage(EncodePng(image));
    ASSERT_THAT(decoded, IsOk());
    EXPECT_EQ(decoded->height, 7);
    EXPECT_EQ(decoded->channels, channels);
    EXPECT_EQ(decoded->samples, image.samples);
  }
}

TEST(DecodeImage, JpegIsClose) {
  Image image{16, 24, 1, std::vector<uint8_t>(16 * 24, 200)};
  const auto decoded = DecodeImage(EncodeJpeg(image));
  ASSERT_THAT(decoded, IsOk());
  EXPECT_EQ(decoded->width, 24);
  EXPECT_EQ(decoded->channels, 1);
  for (const uint8_t sample : decoded->samples) EXPECT_NEAR(sample, 200, 2);
}

TEST(DecodeImage, JpegOfFourInksBecomesRgb) {
  Image inks{8, 8, 4, {}};
  for (int i = 0; i < 64; ++i) inks.samples.insert(inks.samples.end(), {255, 0, 51, 51});
  const struct {
    bool is_inverted;
    int rgb[3];
  } kCases[] = {{false, {0, 204, 163}}, {true, {51, 0, 10}}};
  for (const auto& one : kCases) {
    const auto decoded = DecodeImage(EncodeJpeg(inks, one.is_inverted));
    ASSERT_THAT(decoded, IsOk());
    ASSERT_EQ(decoded->channels, 3);
    ASSERT_EQ(decoded->samples.size(), 8 * 8 * 3);
    for (size_t i = 0; i < decoded->samples.size(); ++i)
      EXPECT_NEAR(decoded->samples[i], one.rgb[i % 3], 3) << one.is_inverted << " at " << i;
  }
}

TEST(DecodeImage, BrokenFilesAreErrors) {
  struct Case {
    const char* why;
    std::string bytes;
  };
  const Case kCases[] = {
      {"empty", ""},
      {"no picture", "hello"},
      {"header ends early", "P5 3"},
      {"fewer samples than the header says", "P5 3 3 255 abc"},
      {"two bytes a sample", "P5 1 1 65535 ab"},
      {"size that overflows", "P6 99999999999 99999999999 255 a"},
      {"no pixels", "P5 0 3 255 "},
      {"PNG cut short", EncodePng(Gradient(9, 9, 3)).substr(0, 60)},
      {"JPEG of two bytes", "\xFF\xD8"},
      {"JPEG cut in half", EncodeJpeg(Gradient(64, 64, 3)).substr(0, 3000)},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(DecodeImage(c.bytes), StatusIs(absl::StatusCode::kInvalidArgument)) << c.why;
  }
}

TEST(ResizeAndCrop, KeepsAPictureOfTheRightSize) {
  const Image image = Gradient(4, 6, 3);
  EXPECT_EQ(ResizeAndCrop(image, 4, 6).samples, image.samples);
}

TEST(ResizeAndCrop, ConstantStaysConstantAtAnySize) {
  const Image image{5, 9, 3, std::vector<uint8_t>(5 * 9 * 3, 77)};
  for (const auto& [height, width] : {std::pair<int, int>{1, 1}, {24, 20}, {3, 40}, {5, 2}}) {
    const Image resized = ResizeAndCrop(image, height, width);
    ASSERT_EQ(resized.samples.size(), height * width * 3);
    for (const uint8_t sample : resized.samples) EXPECT_EQ(sample, 77);
  }
}

TEST(ResizeAndCrop, CropsTheLongSideInTheMiddle) {
  Image image{2, 6, 1, {0, 0, 9, 9, 0, 0, 0, 0, 9, 9, 0, 0}};
  EXPECT_THAT(ResizeAndCrop(image, 2, 2).samples, ElementsAre(9, 9, 9, 9));
}

TEST(ResizeAndCrop, AThinPictureTakesNoMoreMemoryThanItsMiddle) {
  const Image thin{1 << 26, 1, 1, std::vector<uint8_t>(1 << 26, 77)};
  EXPECT_THAT(ResizeAndCrop(thin, 224, 224).samples, Each(77));
}

TEST(WithChannels, GreyToColourAndBack) {
  const Image grey{1, 2, 1, {10, 200}};
  EXPECT_THAT(WithChannels(grey, 3).samples, ElementsAre(10, 10, 10, 200, 200, 200));
  EXPECT_EQ(WithChannels(WithChannels(grey, 3), 1).samples, grey.samples);
}

TEST(ToInput, LayoutsScaleMeanAndStd) {
  const Image image{1, 2, 3, {0, 51, 255, 102, 153, 204}};
  const Normalization normalization{1.0f / 51, {0, 1, 2}, {1, 1, 2}};
  const auto floats = [](const std::string& bytes) {
    std::vector<float> values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const auto near = [](float value) { return ::testing::FloatNear(value, 1e-5f); };
  const auto nhwc = ToInput(image, "FP32", Layout::kNhwc, normalization);
  ASSERT_THAT(nhwc, IsOk());
  EXPECT_THAT(floats(*nhwc), ElementsAre(near(0), near(0), near(1.5), near(2), near(2), near(1)));
  const auto nchw = ToInput(image, "FP32", Layout::kNchw, normalization);
  ASSERT_THAT(nchw, IsOk());
  EXPECT_THAT(floats(*nchw), ElementsAre(near(0), near(2), near(0), near(2), near(1.5), near(1)));
  EXPECT_EQ(*ToInput(image, "UINT8", Layout::kNhwc, {}), std::string("\0\x33\xFF\x66\x99\xCC", 6));
  EXPECT_THAT(ToInput(image, "INT64", Layout::kNchw, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "INT64"));
  EXPECT_THAT(ToInput(image, "FP32", Layout::kNchw, {1, {0, 0}, {1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "1 or 3"));
}

TEST(TensorValues, EveryTypeHasNumbersAndTexts) {
  const struct {
    const char* datatype;
    std::string bytes;
    std::vector<double> numbers;
    std::vector<std::string> texts;
  } cases[] = {
      {"BOOL", std::string("\1\0", 2), {1, 0}, {"true", "false"}},
      {"INT8", "\xFF", {-1}, {"-1"}},
      {"UINT8", "\xFF", {255}, {"255"}},
      {"INT16", "\xFE\xFF", {-2}, {"-2"}},
      {"UINT64", std::string(8, '\xFF'), {0x1p64}, {"18446744073709551615"}},
      {"INT64", std::string("\1\0\0\0\0\0\x20\0", 8), {0x1p53}, {"9007199254740993"}},
      {"FP16",
       std::string("\0\x3E\1\0\0\xFC", 6),
       {1.5, 0x1p-24, -INFINITY},
       {"1.5", "5.9605e-08", "-inf"}},
      {"BF16", "\xC0\xBF", {-1.5}, {"-1.5"}},
      {"FP64", std::string("\0\0\0\0\0\0\xD0\x3F", 8), {0.25}, {"0.25"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.datatype);
    const Tensor tensor{"y", c.datatype, {1}, Layout::kNchw, c.bytes};
    EXPECT_EQ(NumbersOf(tensor).value(), c.numbers);
    EXPECT_EQ(TextsOf(tensor, 9).value(), c.texts);
    EXPECT_EQ(TextsOf(tensor, 1).value().size(), 1);
  }
  EXPECT_THAT(NumbersOf({"y", "BYTES", {1}, Layout::kNchw, "abc"}),
              StatusIs(absl::StatusCode::kInvalidArgument, "'y' is of type BYTES"));
  EXPECT_THAT(TextsOf({"y", "INT32", {1}, Layout::kNchw, "abc"}, 1),
              StatusIs(absl::StatusCode::kInvalidArgument, "3 bytes"));
}

TEST(TextPicture, InkStandsOutFromTheBorder) {
  Image image{3, 3, 1, {50, 50, 50, 50, 250, 50, 50, 50, 50}};
  EXPECT_EQ(TextPicture(image), "      \n  @@  \n      \n");
}

TEST(Scores, TopKBreaksTiesByIndexAndPutsNanLast) {
  EXPECT_THAT(TopK({1, 3, 3, 2}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(TopK({NAN, 1, NAN, 2}, 4), ElementsAre(3, 1, 0, 2));
  EXPECT_THAT(TopK({5}, 10), ElementsAre(0));
}

TEST(Scores, SoftmaxOfLargeScoresIsFinite) {
  EXPECT_THAT(SoftmaxOf({1000, 1000}), ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(SoftmaxOf({}), ElementsAre());
}

}  // namespace
}  // namespace tilewire::client
