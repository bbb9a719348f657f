// SPDX-License-Identifier: Apache-2.0
//
// Training and backward of pooling: gradients by central differences, and the workspace.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "engine/base/aligned_buffer.h"
#include "engine/primitives/pooling/pooling.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct TrainedPooling {
  const char* why;
  Dims src, kernel, strides, left, right;
  Dims dst = {};  // where it is rounded up
};

const TrainedPooling kTrainedPoolings[] = {
    {"2x2 side by side", {2, 3, 6, 6}, {2, 2}, {2, 2}, {0, 0}, {0, 0}},
    {"windows that overlap, padding", {1, 17, 5, 4}, {3, 3}, {2, 1}, {1, 1}, {1, 1}},
    {"pixels between windows", {2, 2, 7, 7}, {2, 2}, {3, 3}, {0, 0}, {0, 0}},
    {"one dimension", {2, 5, 11}, {4}, {2}, {3}, {1}},
    {"three dimensions", {1, 2, 4, 3, 5}, {2, 3, 2}, {1, 2, 2}, {0, 1, 1}, {1, 1, 0}},
    {"the whole of it", {3, 4, 3, 3}, {3, 3}, {1, 1}, {0, 0}, {0, 0}},
    {"the whole of it and padding", {2, 3, 3, 5}, {6, 8}, {1, 2}, {2, 1}, {1, 2}},
    {"the whole of a row", {3, 4, 20}, {20}, {1}, {0}, {0}},
    {"the last pixel is in no window", {2, 3, 4}, {3}, {2}, {0}, {0}},
    {"rounded up", {1, 3, 6, 6}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, {1, 3, 3, 3}},
    {"more than 256 taps", {1, 1, 10, 10}, {17, 17}, {2, 2}, {8, 8}, {8, 8}},
    {"side by side, pairs of groups of channels", {2, 40, 4, 6}, {2, 3}, {2, 3}, {0, 0}, {0, 0}},
};

PoolingDesc DescOf(const TrainedPooling& one, PoolingAlgorithm algorithm, PropKind prop_kind) {
  PoolingDesc desc;
  desc.prop_kind = prop_kind;
  desc.algorithm = algorithm;
  desc.kernel = one.kernel;
  desc.strides = one.strides;
  desc.padding_left = one.left;
  desc.padding_right = one.right;
  Dims dst = one.dst;
  if (dst.empty()) {
    dst = {one.src[0], one.src[1]};
    for (size_t d = 0; d < one.kernel.size(); ++d)
      dst.push_back((one.src[d + 2] + one.left[d] + one.right[d] - one.kernel[d]) / one.strides[d] +
                    1);
  }
  desc.src = Plain(one.src);
  desc.dst = Plain(dst);
  return desc;
}

// The formula, for row-major tensors.
Doubles PoolingOf(const PoolingDesc& desc, const Doubles& x) {
  Doubles y;
  const MemoryDesc src = Plain(desc.src.dims());
  ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
    double highest = -std::numeric_limits<double>::infinity(), sum = 0;
    int64_t taps = 0, window = 1;
    for (int64_t kernel : desc.kernel) window *= kernel;
    ForEachIndex(desc.kernel, [&](const Dims& tap) {
      Dims at = index;
      for (size_t d = 0; d < tap.size(); ++d) {
        at[d + 2] = index[d + 2] * desc.strides[d] - desc.padding_left[d] + tap[d];
        if (at[d + 2] < 0 || at[d + 2] >= src.dim(static_cast<int>(d) + 2)) return;
      }
      const double value = x[src.Offset(at)];
      highest = std::max(highest, value);
      sum += value;
      ++taps;
    });
    y.push_back(desc.algorithm == PoolingAlgorithm::kMax                 ? highest
                : desc.algorithm == PoolingAlgorithm::kAvgIncludePadding ? sum / window
                                                                         : sum / taps);
  });
  return y;
}

// The outputs of forward for training.
struct PoolingForward {
  MemoryDesc workspace;
  Bytes saved;
  std::vector<float> dst;
};

PoolingForward RunTraining(const PoolingDesc& backward, const std::vector<float>& x) {
  PoolingDesc desc = backward;
  desc.prop_kind = PropKind::kForwardTraining;
  desc.workspace = MemoryDesc();
  const auto primitive = CreatePooling(desc, {}, {});
  EXPECT_THAT(primitive, IsOk());
  PoolingForward forward;
  if (!primitive.ok()) return forward;
  forward.workspace = (*primitive)->Desc(kArgWorkspace);
  forward.saved = Garbage(forward.workspace, 5);
  const Bytes src = Pack(desc.src, x);
  forward.dst = Unpack<float>(
      desc.dst, Execute(**primitive, {{kArgSrc, &src}, {kArgWorkspace, &forward.saved}}, kArgDst,
                        Garbage(desc.dst, 7), threading::Team::Serial()));
  return forward;
}

struct PlainRun {
  std::vector<float> x, dy, dx;
};

class PoolingBackwardTest : public RowTest<PoolingDesc> {
 protected:
  PoolingBackwardTest() : RowTest(CreatePooling) {}

  // The gradient of src; nothing where the row refuses.
  std::optional<std::vector<float>> Gradient(PoolingDesc desc, const std::vector<float>& x,
                                             const std::vector<float>& dy) {
    const PoolingForward forward = RunTraining(desc, x);
    desc.prop_kind = PropKind::kBackwardData;
    desc.workspace = forward.workspace;
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes diff_dst = Pack(desc.dst, dy);
    Inputs inputs = {{kArgDiffDst, &diff_dst}};
    if (!forward.workspace.IsZero()) inputs.emplace_back(kArgWorkspace, &forward.saved);
    return Unpack<float>(desc.src,
                         ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(desc.src, 7)));
  }

  // With diff_src at a line and 16 bytes further.
  void ExpectBitsWhereverItBegins(PoolingDesc desc, const PlainRun& plain) {
    const PoolingForward forward = RunTraining(desc, plain.x);
    desc.workspace = forward.workspace;
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Bytes diff_dst = Pack(desc.dst, plain.dy);
    for (size_t offset : {0, 16}) {
      auto lines = AlignedBuffer::Allocate(desc.src.SizeBytes() + offset);
      ASSERT_TRUE(lines.ok());
      ExecuteArgs args;
      args.Set(kArgDiffDst, diff_dst.data()).Set(kArgWorkspace, forward.saved.data());
      args.Set(kArgDiffSrc, lines->data() + offset);
      ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
      const auto* const begin = reinterpret_cast<const uint8_t*>(lines->data() + offset);
      EXPECT_EQ(BitsOf(Unpack<float>(desc.src, Bytes(begin, begin + desc.src.SizeBytes()))),
                BitsOf(plain.dx));
    }
  }

  void ExpectDifferences(const PoolingDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " ", AlgorithmName(desc.algorithm)));
    const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -1, 1);
    const std::vector<float> dy = RandomFloats(desc.dst.ElementCount(), 2, -1, 1);
    const auto dx = Gradient(desc, x, dy);
    if (!dx) return;
    const auto forward = [&](const Doubles& at) { return PoolingOf(desc, at); };
    ExpectGradient(*dx, CentralDifferences(ToDoubles(x), dy, forward, 1e-6),
                   GradientTolerance(GetParam().traits.is_reference));
  }
};

constexpr PoolingAlgorithm kTrainedAlgorithms[] = {PoolingAlgorithm::kMax,
                                                   PoolingAlgorithm::kAvgIncludePadding,
                                                   PoolingAlgorithm::kAvgExcludePadding};

TEST_P(PoolingBackwardTest, CentralDifferences) {
  for (const TrainedPooling& one : kTrainedPoolings) {
    SCOPED_TRACE(one.why);
    for (PoolingAlgorithm algorithm : kTrainedAlgorithms) {
      PoolingDesc desc = DescOf(one, algorithm, PropKind::kBackwardData);
      ExpectDifferences(desc);
      if (one.src.size() != 4) continue;
      desc.src = Tagged(desc.src.dims(), "nChw16c");
      desc.dst = Tagged(desc.dst.dims(), "nChw16c");
      ExpectDifferences(desc);
    }
  }
}

// By the reference, from and to plain tensors.
std::vector<float> PlainGradient(PoolingDesc desc, const std::vector<float>& x,
                                 const std::vector<float>& dy) {
  const PoolingForward forward = RunTraining(desc, x);
  desc.workspace = forward.workspace;
  const auto primitive = CreatePooling(desc, {}, {.reference_only = true});
  EXPECT_THAT(primitive, IsOk());
  const Bytes diff_dst = Pack(desc.dst, dy);
  return Unpack<float>(
      desc.src, Execute(**primitive, {{kArgDiffDst, &diff_dst}, {kArgWorkspace, &forward.saved}},
                        kArgDiffSrc, Garbage(desc.src, 7), threading::Team::Serial()));
}

// A gradient of random numbers, by the reference.
PlainRun PlainRunOf(const PoolingDesc& desc) {
  PlainRun run = {.x = RandomFloats(desc.src.ElementCount(), 1, -1, 1),
                  .dy = RandomFloats(desc.dst.ElementCount(), 2, -1, 1)};
  run.dx = PlainGradient(desc, run.x, run.dy);
  return run;
}

TEST_P(PoolingBackwardTest, EveryLayoutGivesTheBitsOfThePlainOne) {
  for (const TrainedPooling& one : {kTrainedPoolings[1], kTrainedPoolings[3], kTrainedPoolings[4],
                                    kTrainedPoolings[6], kTrainedPoolings[11]}) {
    for (PoolingAlgorithm algorithm : kTrainedAlgorithms) {
      PoolingDesc desc = DescOf(one, algorithm, PropKind::kBackwardData);
      const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -1, 1);
      const std::vector<float> dy = RandomFloats(desc.dst.ElementCount(), 2, -1, 1);
      const std::vector<float> plain = PlainGradient(desc, x, dy);
      const std::vector<Layout> srcs = LayoutsOf(one.src), dsts = LayoutsOf(desc.dst.dims());
      ASSERT_EQ(srcs.size(), dsts.size());
      for (size_t i = 0; i < srcs.size(); ++i) {
        SCOPED_TRACE(srcs[i].why);
        desc.src = srcs[i].desc;
        desc.dst = dsts[i].desc;
        const auto dx = Gradient(desc, x, dy);
        if (dx) {
          EXPECT_EQ(BitsOf(*dx), BitsOf(plain));
        }
      }
    }
  }
}

// Tiles of pixels at the borders of a plane and inside it, which overlapping windows, gaps between
// windows and windows that end beyond the plane make different.
TEST_P(PoolingBackwardTest, PlanesInTilesHaveTheBitsOfThePlainOnes) {
  if (GetParam().name == "pooling/whole_average_backward") GTEST_SKIP() << "takes no maxima";
  const TrainedPooling planes[] = {
      {"overlap by one", {2, 32, 13, 50}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {"overlap by two", {1, 16, 5, 31}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {"rows and columns differ", {1, 48, 9, 40}, {5, 2}, {1, 3}, {2, 0}, {1, 1}},
      {"the widest windows", {1, 16, 3, 70}, {2, 16}, {1, 5}, {0, 15}, {1, 15}},
      {"the longest strides", {1, 16, 2, 75}, {1, 3}, {1, 12}, {0, 1}, {0, 1}},
      {"wider than code takes", {1, 16, 2, 75}, {1, 17}, {1, 13}, {0, 1}, {0, 1}},
      {"rounded up", {1, 16, 26, 26}, {3, 3}, {2, 2}, {0, 0}, {0, 0}, {1, 16, 13, 13}},
      {"256 taps", {1, 16, 20, 20}, {16, 16}, {4, 4}, {0, 0}, {0, 0}},
  };
  for (const TrainedPooling& one : planes) {
    SCOPED_TRACE(one.why);
    PoolingDesc desc = DescOf(one, PoolingAlgorithm::kMax, PropKind::kBackwardData);
    const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -1, 1);
    const std::vector<float> dy = RandomFloats(desc.dst.ElementCount(), 2, -1, 1);
    const std::vector<float> plain = PlainGradient(desc, x, dy);
    for (const char* tag : {"nChw16c", "nhwc"}) {
      desc.src = Tagged(desc.src.dims(), tag);
      desc.dst = Tagged(desc.dst.dims(), tag);
      const auto dx = Gradient(desc, x, dy);
      if (dx) {
        EXPECT_EQ(BitsOf(*dx), BitsOf(plain));
      }
    }
  }
}

// A tensor larger than caches is written past them where its lines allow it.
TEST_P(PoolingBackwardTest, LargeTensorsHaveTheBitsOfThePlainOnes) {
  if (GetParam().name == "pooling/whole_average_backward") GTEST_SKIP() << "takes no maxima";
  const TrainedPooling one = {"", {1, 64, 130, 130}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  PoolingDesc desc = DescOf(one, PoolingAlgorithm::kMax, PropKind::kBackwardData);
  const PlainRun plain = PlainRunOf(desc);
  desc.src = Tagged(desc.src.dims(), "nChw16c");
  desc.dst = Tagged(desc.dst.dims(), "nChw16c");
  ExpectBitsWhereverItBegins(desc, plain);
}

// Rows after such gaps begin at 8 and at 16 bytes: neither suits all vectors, though the first row
// is aligned.
TEST_P(PoolingBackwardTest, LargeTensorsMayHaveGapsBetweenRows) {
  if (GetParam().name == "pooling/whole_average_backward") GTEST_SKIP() << "takes no maxima";
  const TrainedPooling one = {"", {1, 16, 262, 262}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  PoolingDesc desc = DescOf(one, PoolingAlgorithm::kMax, PropKind::kBackwardData);
  const PlainRun plain = PlainRunOf(desc);
  desc.dst = Tagged(desc.dst.dims(), "nhwc");
  for (int64_t row_gap : {2, 4}) {
    desc.src = ChannelsLastWithGaps(desc.src.dims(), 0, row_gap);
    ExpectBitsWhereverItBegins(desc, plain);
  }
}

TEST_P(PoolingBackwardTest, TheFirstOfEqualsTakesAllAndNanWins) {
  if (GetParam().name == "pooling/whole_average_backward") GTEST_SKIP() << "takes no maxima";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float low = -std::numeric_limits<float>::infinity();
  const TrainedPooling one = {"", {1, 1, 2, 8}, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
  const std::vector<float> x = {3, 3, 1, nan, low, low, 0, 2,  //
                                3, 3, 9, nan, low, low, 2, 2};
  PoolingDesc desc = DescOf(one, PoolingAlgorithm::kMax, PropKind::kBackwardData);
  for (const char* tag : {"nchw", "nChw16c"}) {
    desc.src = Tagged(desc.src.dims(), tag);
    desc.dst = Tagged(desc.dst.dims(), tag);
    const auto dx = Gradient(desc, x, {1, 2, 3, 4});
    if (!dx) continue;
    EXPECT_EQ(*dx, (std::vector<float>{1, 0, 0, 2, 3, 0, 0, 4,  //
                                       0, 0, 0, 0, 0, 0, 0, 0}));
  }
}

TEST_P(PoolingBackwardTest, AnyIsTheLayoutOfTheOther) {
  if (absl::EndsWith(GetParam().name, "maximum_backward")) GTEST_SKIP() << "takes no averages";
  for (const auto& [one, tag] :
       {std::pair(kTrainedPoolings[1], "nChw16c"), std::pair(kTrainedPoolings[5], "nchw")}) {
    PoolingDesc desc = DescOf(one, PoolingAlgorithm::kAvgIncludePadding, PropKind::kBackwardData);
    desc.dst = Tagged(desc.dst.dims(), tag);
    desc.src = *MemoryDesc::CreateAny(desc.src.dims(), DataType::kF32);
    const auto primitive = Create(desc);
    if (primitive) {
      EXPECT_EQ(primitive->Desc(kArgDiffSrc), Tagged(desc.src.dims(), tag));
    }
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Pooling);

TEST(PoolingTrainingTest, ForwardIsThatOfInferenceAndLeavesPlaces) {
  for (const TrainedPooling& one : kTrainedPoolings) {
    SCOPED_TRACE(one.why);
    for (PoolingAlgorithm algorithm : kTrainedAlgorithms) {
      PoolingDesc desc = DescOf(one, algorithm, PropKind::kForwardTraining);
      const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -1, 1);
      const Doubles expected = PoolingOf(desc, ToDoubles(x));
      int64_t taps = 1;
      for (int64_t kernel : desc.kernel) taps *= kernel;
      const std::vector<Layout> srcs = LayoutsOf(one.src), dsts = LayoutsOf(desc.dst.dims());
      for (size_t i = 0; i < srcs.size(); ++i) {
        SCOPED_TRACE(srcs[i].why);
        desc.src = srcs[i].desc;
        desc.dst = dsts[i].desc;
        const PoolingForward forward = RunTraining(desc, x);
        ExpectGradient(forward.dst, expected, 1e-6);
        const int64_t elements = desc.dst.SizeBytes() / static_cast<int64_t>(sizeof(float));
        EXPECT_EQ(forward.workspace.SizeBytes(),
                  algorithm == PoolingAlgorithm::kMax ? elements * (taps > 256 ? 4 : 1) : 0);
      }
    }
  }
}

TEST(PoolingBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreatePooling);
  const PoolingDesc forward =
      DescOf(kTrainedPoolings[0], PoolingAlgorithm::kMax, PropKind::kForwardTraining);
  PoolingDesc inference = forward;
  inference.prop_kind = PropKind::kForwardInference;
  const MemoryDesc places = (*CreatePooling(forward, {}, {}))->Desc(kArgWorkspace);
  EXPECT_TRUE((*CreatePooling(inference, {}, {}))->Desc(kArgWorkspace).IsZero());
  PoolingDesc good = forward;
  good.prop_kind = PropKind::kBackwardData;
  good.workspace = places;
  EXPECT_THAT(status(good), IsOk());
  const auto with = [&](auto change) {
    PoolingDesc desc = good;
    change(&desc);
    return status(desc);
  };
  EXPECT_THAT(with([](PoolingDesc* d) { d->workspace = MemoryDesc(); }),
              StatusIs(kInvalid, "has to run as forward_training"));
  EXPECT_THAT(with([](PoolingDesc* d) {
                d->kernel = {3, 3};
                d->padding_right = {1, 1};
              }),
              StatusIs(kInvalid, "of another problem"));
  EXPECT_THAT(with([](PoolingDesc* d) { d->dst = Tagged(d->dst.dims(), "nhwc"); }),
              StatusIs(kInvalid, "of another problem"));
  EXPECT_THAT(with([](PoolingDesc* d) { d->algorithm = PoolingAlgorithm::kAvgIncludePadding; }),
              StatusIs(kInvalid, "saves none"));
  EXPECT_THAT(with([](PoolingDesc* d) { d->prop_kind = PropKind::kForwardTraining; }),
              StatusIs(kInvalid, "given to forward_training"));
  EXPECT_THAT(with([](PoolingDesc* d) { d->prop_kind = PropKind::kBackwardWeights; }),
              StatusIs(kUnimplemented, "does not run backward_weights"));
  PoolingDesc bytes =
      DescOf(kTrainedPoolings[0], PoolingAlgorithm::kAvgIncludePadding, good.prop_kind);
  bytes.src = Plain(bytes.src.dims(), DataType::kU8);
  bytes.dst = Plain(bytes.dst.dims(), DataType::kU8);
  EXPECT_THAT(status(bytes), StatusIs(kUnimplemented, "not u8"));
}

}  // namespace
}  // namespace tilewire::testing
