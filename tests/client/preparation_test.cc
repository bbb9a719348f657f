// SPDX-License-Identifier: Apache-2.0
#include "client/preparation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

Image Pattern(int64_t height, int64_t width) {
  Image image{height, width, 3, {}};
  for (int64_t i = 0; i < height * width * 3; ++i)
    image.samples.push_back(static_cast<uint8_t>((i * i / 7 + i) % 251));
  return image;
}

// FNV-1a.
uint64_t HashOf(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

// The hashes are those of the Python package, which is held against torchvision and Pillow.
TEST(Preparation, MakesTheBytesOfPillow) {
  const struct {
    const char* name;
    int64_t height, width, side;
    uint64_t hash;
  } cases[] = {
      {"resnet50", 300, 417, 224, 0x99283a1b02231230},         // smaller, bilinear
      {"efficientnet_b0", 97, 61, 224, 0x7da57ba6ac7548ca},    // larger, bicubic, upright
      {"inception_v3", 640, 480, 299, 0xad52bc0ed1129279},     //
      {"convnext_tiny", 236, 236, 224, 0xfc9a1213276e09ca},    // of the right size
      {"efficientnet_b1", 200, 201, 240, 0x6c3b554503eecf07},  // half a pixel at the side
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto preparation = TorchvisionPreparation(c.name);
    ASSERT_THAT(preparation, IsOk());
    const Image made = Prepare(Pattern(c.height, c.width), *preparation);
    EXPECT_EQ(made.height, c.side);
    EXPECT_EQ(made.width, c.side);
    EXPECT_EQ(HashOf(made.samples), c.hash);
  }
}

TEST(Preparation, WeightsHaveTheirOwn) {
  EXPECT_EQ(TorchvisionPreparation("resnet50")->resize, 232);
  EXPECT_EQ(TorchvisionPreparation("resnet50:V2")->resize, 232);
  EXPECT_EQ(TorchvisionPreparation("resnet50:V1")->resize, 256);
  EXPECT_EQ(TorchvisionPreparation("resnet18:V1")->resize, 256);
  EXPECT_THAT(TorchvisionPreparation("resnet18")->normalization.mean,
              ::testing::ElementsAre(0.485f, 0.456f, 0.406f));
  EXPECT_THAT(TorchvisionPreparation("efficientnet_v2_l")->normalization.std,
              ::testing::ElementsAre(0.5f, 0.5f, 0.5f));
  EXPECT_THAT(TorchvisionPreparation("resnet18:V2"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(TorchvisionPreparation("lenet").status().message(),
              ::testing::HasSubstr("there is one for alexnet, densenet121, "));
}

TEST(Preparation, ASmallPictureStandsInTheMiddleOfZeros) {
  const Image image{1, 2, 1, {7, 9}};
  EXPECT_THAT(Prepare(image, {.resize = 1, .crop = 3}).samples,
              ::testing::ElementsAre(0, 0, 0, 7, 9, 0, 0, 0, 0));
}

// Resized whole, these would have 2^34 pixels by the shorter side.
TEST(Preparation, AThinPictureTakesNoMoreMemoryThanItsSquare) {
  for (const bool is_wide : {false, true}) {
    Image thin{is_wide ? 1 : 1 << 26, is_wide ? 1 << 26 : 1, 1, {}};
    thin.samples.assign(1 << 26, 90);
    const Image made = Prepare(thin, {.resize = 256, .crop = 224});
    EXPECT_THAT(made.samples, ::testing::AllOf(::testing::SizeIs(224 * 224), ::testing::Each(90)));
  }
}

}  // namespace
}  // namespace tilewire::client
