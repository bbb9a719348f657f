// SPDX-License-Identifier: Apache-2.0
#include "client/picture_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAreArray;
using testing::StatusIs;
using Shape = std::vector<int64_t>;

constexpr int64_t kFree = 224;

TEST(PictureInputTest, FindsWhereChannelsRowsAndColumnsStand) {
  const struct {
    Shape declared;
    int64_t batch;
    Layout layout;
    Shape sent;
    int64_t pictures, channels, height, width;
    Layout samples;
  } cases[] = {
      {{-1, 3, 24, 20}, 1, Layout::kNchw, {1, 3, 24, 20}, 1, 3, 24, 20, Layout::kNchw},
      {{-1, 3, 24, 20}, 5, Layout::kNhwc, {5, 24, 20, 3}, 5, 3, 24, 20, Layout::kNhwc},
      {{2, 1, -1, -1}, 1, Layout::kNchw, {2, 1, 224, 224}, 2, 1, 224, 224, Layout::kNchw},
      {{-1, 24, 20, 3}, 2, Layout::kNchw, {2, 24, 20, 3}, 2, 3, 24, 20, Layout::kNhwc},
      {{3, 24, 20}, 1, Layout::kNchw, {3, 24, 20}, 1, 3, 24, 20, Layout::kNchw},
      {{1, 24, 20}, 1, Layout::kNchw, {1, 24, 20}, 1, 1, 24, 20, Layout::kNchw},
      {{24, 20, 1}, 1, Layout::kNchw, {24, 20, 1}, 1, 1, 24, 20, Layout::kNhwc},
      {{-1, -1, 3}, 1, Layout::kNchw, {224, 224, 3}, 1, 3, 224, 224, Layout::kNhwc},
      {{3, 24, 3}, 1, Layout::kNchw, {3, 24, 3}, 1, 3, 24, 3, Layout::kNchw},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(ShapeText(one.declared));
    ASSERT_OK_AND_ASSIGN(const PictureInput picture, PictureInputOf({"x", "UINT8", one.declared},
                                                                    one.batch, kFree, one.layout));
    EXPECT_EQ(picture.tensor.name, "x");
    EXPECT_EQ(picture.tensor.datatype, "UINT8");
    EXPECT_EQ(picture.tensor.layout, one.layout);
    EXPECT_THAT(picture.tensor.shape, ElementsAreArray(one.sent));
    EXPECT_EQ(picture.pictures, one.pictures);
    EXPECT_EQ(picture.channels, one.channels);
    EXPECT_EQ(picture.height, one.height);
    EXPECT_EQ(picture.width, one.width);
    EXPECT_EQ(picture.samples, one.samples);
  }
}

TEST(PictureInputTest, APictureOfKnownSizesFollowsTheRankAndOrderOfTheInput) {
  const struct {
    Shape declared, sent;
    Layout samples;
    bool has_both;
  } cases[] = {
      {{-1, 3, 24, 20}, {1, 3, 24, 20}, Layout::kNchw, true},
      {{1, 3, -1, -1}, {1, 3, 24, 20}, Layout::kNchw, true},
      {{-1, -1, -1, -1}, {1, 3, 24, 20}, Layout::kNchw, true},
      {{-1, 24, 20, 3}, {1, 24, 20, 3}, Layout::kNhwc, false},
      {{-1, -1, -1, 3}, {1, 24, 20, 3}, Layout::kNhwc, false},
      {{3, 24, 20}, {3, 24, 20}, Layout::kNchw, false},
      {{24, 20, 3}, {24, 20, 3}, Layout::kNhwc, false},
      {{-1, -1, 3}, {24, 20, 3}, Layout::kNhwc, false},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(ShapeText(one.declared));
    const TensorMetadata input = {"x", "UINT8", one.declared};
    ASSERT_OK_AND_ASSIGN(const PictureInput picture,
                         InputOfPicture(input, 3, 24, 20, Layout::kNchw));
    EXPECT_THAT(picture.tensor.shape, ElementsAreArray(one.sent));
    EXPECT_EQ(picture.samples, one.samples);
    EXPECT_EQ(picture.tensor.layout, Layout::kNchw);
    EXPECT_EQ(HasBothLayouts(picture), one.has_both);
    const auto other = InputOfPicture(input, 3, 24, 20, Layout::kNhwc);
    EXPECT_EQ(other.ok(), one.has_both);
    if (!other.ok()) continue;
    EXPECT_THAT(other->tensor.shape, ElementsAreArray({1, 24, 20, 3}));
    EXPECT_EQ(other->samples, Layout::kNhwc);
    EXPECT_EQ(other->tensor.layout, Layout::kNhwc);
  }
  for (const Shape& declared : {Shape{-1, 4, 24, 20}, Shape{2, 3, 24, 20}, Shape{3, 20, 24},
                                Shape{-1, 3}, Shape{1, 1, 3, 24, 20}, Shape{}}) {
    EXPECT_THAT(
        InputOfPicture({"x", "FP32", declared}, 3, 24, 20, Layout::kNchw),
        StatusIs(absl::StatusCode::kInvalidArgument, "which one picture of 3x24x20 does not fit"));
  }
}

TEST(PictureInputTest, NamesTheInputThatNoPictureFits) {
  const struct {
    Shape declared;
    int64_t batch;
    Layout layout;
    const char* text;
  } cases[] = {
      {{}, 1, Layout::kNchw, "input 'x' has no shape in the file"},
      {{3, 24}, 1, Layout::kNchw, "input 'x' is 3x24, which no picture fits"},
      {{-1, 4, 24, 20}, 1, Layout::kNchw, "input 'x' is Nx4x24x20, which no picture fits"},
      {{-1, -1, 24, 20}, 1, Layout::kNchw, "which no picture fits"},
      {{-1, 24, 20}, 1, Layout::kNchw, "which no picture fits"},
      {{-1, 3, 8, 24, 20}, 1, Layout::kNchw, "which no picture fits"},
      {{3, 24, 20}, 3, Layout::kNchw, "which takes one picture, not a batch of 3"},
      {{3, 24, 20}, 1, Layout::kNhwc, "not in nhwc"},
      {{-1, 24, 20, 3}, 1, Layout::kNhwc, "not in nhwc"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(PictureInputOf({"x", "FP32", one.declared}, one.batch, kFree, one.layout),
                StatusIs(absl::StatusCode::kInvalidArgument, one.text));
  }
}

}  // namespace
}  // namespace tilewire::client
