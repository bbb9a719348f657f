// SPDX-License-Identifier: Apache-2.0
//
// Every row that normalizes for training against the formula in double precision: dst, and the
// statistics of the batch, on 1, 2 and 7 threads.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "tests/engine/primitives/gradient_test.h"

namespace tilewire::testing {
namespace {

// A sum of f32 has up to 128 terms one after the other (a piece of 256 pixels, two at a time),
// whose roundings follow each other; a few more make an element.
constexpr double kRoundings = 140 * 0x1p-24;

// The statistics of a channel, and how far an element is from the mean at most.
struct TrainedChannel {
  double mean = 0, variance = 0, farthest = 0;
};

std::vector<TrainedChannel> TrainedChannels(const Dims& dims, const std::vector<float>& x) {
  std::vector<TrainedChannel> channels(dims[1]);
  const double count = static_cast<double>(x.size()) / static_cast<double>(dims[1]);
  size_t i = 0;
  ForEachIndex(dims, [&](const Dims& at) { channels[at[1]].mean += x[i++] / count; });
  i = 0;
  ForEachIndex(dims, [&](const Dims& at) {
    TrainedChannel& channel = channels[at[1]];
    const double difference = x[i++] - channel.mean;
    channel.variance += difference * difference / count;
    channel.farthest = std::max(channel.farthest, std::abs(difference));
  });
  return channels;
}

class BatchNormalizationTrainingRowsTest : public RowTest<BatchNormalizationDesc> {
 protected:
  BatchNormalizationTrainingRowsTest() : RowTest(CreateBatchNormalization) {}

  // `far`: what is added to all elements.
  void ExpectTraining(const BatchNormalizationDesc& desc, float far) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " global ", desc.use_global_stats, " scale ",
                              desc.use_scale_shift, " from ", far));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Dims& dims = desc.src.dims();
    const ByArgument given = {{kArgSrc, RandomFloats(desc.src.ElementCount(), 1, far - 2, far + 2)},
                              {kArgMean, RandomFloats(dims[1], 2, far - 0.5f, far + 0.5f)},
                              {kArgVariance, RandomFloats(dims[1], 3, 0.5f, 2)},
                              {kArgWeights, RandomFloats(2 * dims[1], 4, -1.5f, 1.5f)}};
    const ByArgument found = RunGradient(*primitive, given);
    std::vector<TrainedChannel> channels = TrainedChannels(dims, given.at(kArgSrc));
    for (int64_t c = 0; c < dims[1]; ++c) {
      TrainedChannel& channel = channels[c];
      if (desc.use_global_stats) {
        channel = {given.at(kArgMean)[c], given.at(kArgVariance)[c], 4};
        continue;
      }
      ASSERT_NEAR(found.at(kArgMean)[c], channel.mean,
                  kRoundings * channel.farthest + 0x1p-24 * std::abs(channel.mean));
      ASSERT_NEAR(found.at(kArgVariance)[c], channel.variance,
                  kRoundings * channel.farthest * channel.farthest);
    }
    ExpectElements(desc, channels, given, found.at(kArgDst));
  }

 private:
  // A row of given statistics may compute a line a x + b, whose terms are larger than their sum.
  static void ExpectElements(const BatchNormalizationDesc& desc,
                             const std::vector<TrainedChannel>& channels, const ByArgument& given,
                             const std::vector<float>& found) {
    const std::vector<float>&src = given.at(kArgSrc), &weights = given.at(kArgWeights);
    size_t i = 0;
    ForEachIndex(desc.src.dims(), [&](const Dims& at) {
      const auto& [mean, variance, farthest] = channels[at[1]];
      const double scale = (desc.use_scale_shift ? weights[at[1]] : 1) /
                           std::sqrt(variance + static_cast<double>(desc.epsilon));
      const double shift = desc.use_scale_shift ? weights[desc.src.dim(1) + at[1]] : 0;
      const double want = scale * (src[i] - mean) + shift;
      const double line = desc.use_global_stats ? std::abs(scale * mean) * 8 * 0x1p-24 : 0;
      const double size =
          std::abs(scale) * farthest * (1 + 1 / (variance + desc.epsilon)) + std::abs(shift);
      ASSERT_NEAR(found[i], want, kRoundings * size + line) << "element " << i;
      ++i;
    });
  }
};

BatchNormalizationDesc TrainingOf(const MemoryDesc& md) {
  return {PropKind::kForwardTraining, md, md, 1e-3f};
}

// One, three and eight images; channels that fill blocks and that do not; one pixel, a few, and
// several pieces.
TEST_P(BatchNormalizationTrainingRowsTest, EveryLayoutAndOption) {
  for (const Dims& dims : {Dims{8, 24}, Dims{1, 8, 5, 7}, Dims{3, 17, 3, 5}, Dims{8, 16, 4},
                           Dims{3, 40, 2, 2, 2}, Dims{2, 24, 17, 33}, Dims{1, 3, 1, 1}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (int options = 0; options < 4; ++options) {
        BatchNormalizationDesc desc = TrainingOf(layout.desc);
        desc.use_global_stats = (options & 1) != 0;
        desc.use_scale_shift = (options & 2) != 0;
        ExpectTraining(desc, 0);
      }
    }
  }
}

// Squares of the elements are 10^6 times the variance: their sums would tell nothing about it.
TEST_P(BatchNormalizationTrainingRowsTest, MeansFarFromZero) {
  for (const char* tag : {"nChw8c", "nChw16c", "nhwc"}) {
    BatchNormalizationDesc desc = TrainingOf(Tagged({3, 24, 20, 20}, tag));
    for (bool global : {false, true}) {
      desc.use_global_stats = global;
      ExpectTraining(desc, 1000);
    }
  }
}

TEST_P(BatchNormalizationTrainingRowsTest, MayRunInPlace) {
  for (bool global : {false, true}) {
    BatchNormalizationDesc desc = TrainingOf(Tagged({2, 19, 3, 5}, "nChw16c"));
    desc.use_global_stats = global;
    const auto primitive = Create(desc);
    if (!primitive) continue;
    const ByArgument given = {{kArgSrc, RandomFloats(desc.src.ElementCount(), 1)},
                              {kArgMean, RandomFloats(19, 2)},
                              {kArgVariance, RandomFloats(19, 3, 0.5f, 2)},
                              {kArgWeights, RandomFloats(38, 4)}};
    const ByArgument apart = RunGradient(*primitive, given);
    Bytes both = Pack(desc.src, given.at(kArgSrc));
    Bytes mean = Pack(Plain({19}), given.at(kArgMean));
    Bytes variance = Pack(Plain({19}), given.at(kArgVariance));
    Bytes weights = Pack(Plain({2, 19}), given.at(kArgWeights));
    ExecuteArgs args;
    args.Set(kArgSrc, both.data()).Set(kArgDst, both.data()).Set(kArgMean, mean.data());
    args.Set(kArgVariance, variance.data()).Set(kArgWeights, weights.data());
    ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
    EXPECT_EQ(Unpack<float>(desc.src, both), apart.at(kArgDst));
  }
}

// The elements of dst.
std::vector<std::vector<float>> NormalizedWhereverItBegins(const Created& primitive,
                                                           const MemoryDesc& md) {
  const Bytes src = Pack(md, RandomFloats(md.ElementCount(), 1));
  Bytes mean = Pack(Plain({md.dim(1)}), RandomFloats(md.dim(1), 2));
  Bytes variance = Pack(Plain({md.dim(1)}), RandomFloats(md.dim(1), 3, 0.5f, 2));
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgMean, mean.data()).Set(kArgVariance, variance.data());
  return WrittenWhereverItBegins(primitive, args, kArgDst, md);
}

// A dst larger than caches is written past them where it begins with a line.
TEST_P(BatchNormalizationTrainingRowsTest, LargeTensorsHaveTheSameBitsWhereverTheyBegin) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "has one way to write";
  const MemoryDesc md = Tagged({2, 48, 150, 150}, "nChw16c");
  BatchNormalizationDesc desc = TrainingOf(md);
  desc.use_scale_shift = false;
  for (bool global : {false, true}) {
    desc.use_global_stats = global;
    ExpectTraining(desc, 0);
    const auto primitive = Create(desc);
    if (!primitive) continue;
    const auto found = NormalizedWhereverItBegins(*primitive, md);
    EXPECT_TRUE(found.at(0) == found.at(1));
  }
}

// Vectors of such pixels are not aligned, though the first one is.
TEST_P(BatchNormalizationTrainingRowsTest, LargeTensorsMayHaveGapsBetweenPixels) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "has one way to write";
  for (bool global : {false, true}) {
    std::vector<std::vector<float>> found;
    for (int64_t gap : {0, 4}) {
      BatchNormalizationDesc desc = TrainingOf(ChannelsLastWithGaps({1, 48, 210, 210}, gap, 0));
      desc.use_scale_shift = false;
      desc.use_global_stats = global;
      const auto primitive = Create(desc);
      if (!primitive) continue;
      for (auto& elements : NormalizedWhereverItBegins(*primitive, desc.src))
        found.push_back(std::move(elements));
    }
    for (const auto& elements : found) EXPECT_TRUE(elements == found[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, BatchNormalizationTrainingRowsTest,
                         ::testing::ValuesIn(RowsThatRun({PropKind::kForwardTraining},
                                                         BatchNormalizationImplementations())),
                         RowName<Implementation<BatchNormalizationDesc>>);

}  // namespace
}  // namespace tilewire::testing
