// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/roi_align/roi_align.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct RoiAlignCase {
  const char* why;
  Dims src;
  int64_t high, wide;
  std::vector<float> rois;
  std::vector<int64_t> batches;
  float scale = 1;
  int64_t samples = 2;
};

std::vector<RoiAlignCase> RoiAlignCases() {
  const std::vector<float> two = {1, 2, 9.5f, 7.25f, 0, 0, 3, 3};
  return {
      {"two regions of two images", {2, 5, 10, 12}, 3, 4, two, {1, 0}},
      {"as many samples as pixels", {2, 16, 10, 12}, 2, 2, two, {0, 1}, 1, 0},
      {"one bin", {1, 3, 10, 12}, 1, 1, two, {0, 0}},
      {"coordinates of a larger image", {1, 19, 6, 6}, 7, 7, {10, 20, 80, 90}, {0}, 0.0625f},
      {"over the border", {1, 4, 5, 5}, 4, 4, {-3, -2, 9, 8}, {0}},
      {"outside", {1, 4, 5, 5}, 2, 2, {20, 20, 30, 30}, {0}},
      {"without pixels", {1, 4, 5, 5}, 2, 2, {2, 2, 2, 2}, {0}, 1, 0},
      {"inside out", {1, 4, 5, 5}, 2, 3, {4, 4, 1, 2}, {0}},
      {"one pixel", {1, 33, 1, 1}, 2, 2, {0, 0, 1, 1}, {0}, 1, 3},
      {"no region", {1, 4, 5, 5}, 2, 2, {}, {}},
  };
}

// src at (y, x): bilinear, the border's up to one pixel beyond it, else nothing.
struct FourPixels {
  int64_t rows[2], columns[2];
  double weights[2][2];
};

std::optional<FourPixels> PixelsAt(double y, double x, int64_t height, int64_t width) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width))
    return std::nullopt;
  const double row = std::clamp(y, 0.0, static_cast<double>(height - 1));
  const double column = std::clamp(x, 0.0, static_cast<double>(width - 1));
  const auto top = static_cast<int64_t>(row), left = static_cast<int64_t>(column);
  const double down = row - static_cast<double>(top), right = column - static_cast<double>(left);
  return FourPixels{
      {top, std::min(top + 1, height - 1)},
      {left, std::min(left + 1, width - 1)},
      {{(1 - down) * (1 - right), (1 - down) * right}, {down * (1 - right), down * right}}};
}

// The formula of roi_align.h in doubles.
double Expected(const RoiAlignDesc& desc, const std::vector<float>& src, const RoiAlignCase& one,
                const Dims& at) {
  const auto edge = [&](int i) {
    return static_cast<double>(one.rois[at[0] * 4 + i]) * desc.scale - (desc.aligned ? 0.5 : 0);
  };
  double wide = edge(2) - edge(0), high = edge(3) - edge(1);
  if (!desc.aligned) wide = std::max(wide, 1.0), high = std::max(high, 1.0);
  const double bin_high = high / static_cast<double>(one.high);
  const double bin_wide = wide / static_cast<double>(one.wide);
  const auto samples = [&](double bin) {
    return one.samples > 0 ? one.samples : static_cast<int64_t>(std::max(0.0, std::ceil(bin)));
  };
  const int64_t rows = samples(bin_high), columns = samples(bin_wide);
  const int64_t height = one.src[2], width = one.src[3];
  double sum = 0, largest = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double y = edge(1) + (static_cast<double>(at[2]) +
                                  (static_cast<double>(i) + 0.5) / static_cast<double>(rows)) *
                                     bin_high;
      const double x = edge(0) + (static_cast<double>(at[3]) +
                                  (static_cast<double>(j) + 0.5) / static_cast<double>(columns)) *
                                     bin_wide;
      const auto four = PixelsAt(y, x, height, width);
      double value = 0, most = four ? -1e30 : 0;
      for (int r = 0; four && r < 2; ++r) {
        for (int c = 0; c < 2; ++c) {
          const int64_t pixel = four->rows[r] * width + four->columns[c];
          const int64_t plane = one.batches[at[0]] * one.src[1] + at[1];
          const double part = four->weights[r][c] * src[plane * height * width + pixel];
          value += part;
          most = std::max(most, part);
        }
      }
      sum += value;
      largest = i + j == 0 ? most : std::max(largest, most);
    }
  }
  return desc.takes_maximum ? largest
                            : sum / static_cast<double>(std::max<int64_t>(1, rows * columns));
}

class RoiAlignTest : public RowTest<RoiAlignDesc> {
 protected:
  RoiAlignTest() : RowTest(CreateRoiAlign) {}

  RoiAlignDesc DescOf(const RoiAlignCase& one) const {
    RoiAlignDesc desc;
    const auto regions = static_cast<int64_t>(one.batches.size());
    const Dims dst = {regions, one.src[1], one.high, one.wide};
    const bool is_reference = GetParam().traits.is_reference;
    desc.src = is_reference ? Plain(one.src) : Tagged(one.src, FormatTag::k_nhwc);
    desc.dst = is_reference ? Plain(dst) : Tagged(dst, FormatTag::k_nhwc);
    desc.rois = Plain({regions, 4});
    desc.batches = Plain({regions}, DataType::kS64);
    desc.scale = one.scale;
    desc.samples_per_bin = one.samples;
    return desc;
  }

  static MemoryDesc Tagged(const Dims& dims, FormatTag tag) {
    return MemoryDesc::Create(dims, DataType::kF32, tag).value();
  }

  void ExpectPooled(const RoiAlignCase& one, const RoiAlignDesc& desc) {
    SCOPED_TRACE(absl::StrCat(one.why, desc.takes_maximum ? ", maximum" : "",
                              desc.aligned ? "" : ", not aligned"));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Bytes src = RandomTensor(desc.src, 1);
    const Bytes rois = Pack<float>(desc.rois, one.rois);
    const Bytes batches = Pack<int64_t>(desc.batches, one.batches);
    const Inputs inputs = {
        {kArgMultipleSrc, &src}, {kArgMultipleSrc + 1, &rois}, {kArgMultipleSrc + 2, &batches}};
    const std::vector<float> got =
        Unpack<float>(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
    const std::vector<float> pixels = Unpack<float>(desc.src, src);
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](const Dims& at) {
      // Coordinates of up to 16 pixels are f32: a weight is off by their rounding, 2^-20, of each
      // direction, and pixels are up to 128.
      EXPECT_NEAR(got[i++], Expected(desc, pixels, one, at), 3e-4) << DimsToString(at);
    });
  }
};

TEST_P(RoiAlignTest, EveryCase) {
  for (const RoiAlignCase& one : RoiAlignCases()) {
    RoiAlignDesc desc = DescOf(one);
    for (bool takes_maximum : {false, true}) {
      for (bool aligned : {false, true}) {
        desc.takes_maximum = takes_maximum, desc.aligned = aligned;
        ExpectPooled(one, desc);
      }
    }
  }
}

TEST_P(RoiAlignTest, RegionsThatAreRefusedWriteNothing) {
  const float infinity = std::numeric_limits<float>::infinity();
  const RoiAlignCase cases[] = {
      {"an image too many", {2, 3, 4, 4}, 2, 2, {0, 0, 1, 1}, {2}},
      {"no image", {2, 3, 4, 4}, 2, 2, {0, 0, 1, 1}, {-1}},
      {"infinite", {2, 3, 4, 4}, 2, 2, {0, 0, infinity, 1}, {0}},
      {"not a number", {2, 3, 4, 4}, 2, 2, {std::nanf(""), 0, 1, 1}, {0}},
      {"too many samples", {2, 3, 4, 4}, 2, 2, {0, 0, 1, 1e9f}, {0}, 1, 0}};
  for (const RoiAlignCase& one : cases) {
    const RoiAlignDesc desc = DescOf(one);
    const auto primitive = Create(desc);
    ASSERT_TRUE(primitive);
    const Bytes src = RandomTensor(desc.src, 1), rois = Pack<float>(desc.rois, one.rois);
    const Bytes batches = Pack<int64_t>(desc.batches, one.batches), before = Garbage(desc.dst, 7);
    Bytes after = before;
    ExecuteArgs args;
    args.Set(kArgMultipleSrc, src.data()).Set(kArgMultipleSrc + 1, rois.data());
    args.Set(kArgMultipleSrc + 2, batches.data()).Set(kArgDst, after.data());
    EXPECT_THAT(primitive->library->Execute(args, threading::Team::Serial()),
                StatusIs(kInvalid, "region 0 is"))
        << one.why;
    EXPECT_EQ(before, after) << one.why;
  }
}

TILEWIRE_TEST_EVERY_ROW(RoiAlign);

TEST(RoiAlignErrorsTest, CreationNamesWhatDoesNotFit) {
  RoiAlignDesc desc;
  desc.src = Plain({1, 3, 4, 4});
  desc.rois = Plain({2, 4});
  desc.batches = Plain({2}, DataType::kS64);
  desc.dst = Plain({2, 3, 7, 7});
  const auto status = StatusOfCreating(CreateRoiAlign);
  EXPECT_THAT(status(desc), IsOk());
  for (float scale : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    RoiAlignDesc other = desc;
    other.scale = scale;
    EXPECT_THAT(status(other), StatusIs(kInvalid, "scale"));
  }
  RoiAlignDesc other = desc;
  other.samples_per_bin = 4097;
  EXPECT_THAT(status(other), StatusIs(kInvalid, "4097 samples per bin"));
  other = desc;
  other.rois = Plain({2, 5});
  EXPECT_THAT(status(other), StatusIs(kInvalid, "rois f32:2x5"));
  other = desc;
  other.batches = Plain({2});
  EXPECT_THAT(status(other), StatusIs(kUnimplemented, "f32"));
}

}  // namespace
}  // namespace tilewire::testing
