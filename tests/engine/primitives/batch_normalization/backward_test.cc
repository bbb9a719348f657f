// SPDX-License-Identifier: Apache-2.0
//
// Training and backward of batch normalization: statistics, the bits of relu, and gradients of src,
// scale and shift by central differences.
#include <cmath>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "tests/engine/primitives/gradient_test.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Desc = BatchNormalizationDesc;

// ChannelValues of one problem; scale and shift one after the other.
struct ChannelValues {
  std::vector<float> x, mean, variance, weights, dy;
};

ChannelValues ValuesOf(const Dims& dims) {
  const int64_t count = *ElementCount(dims), channels = dims[1];
  return {RandomFloats(count, 1, -2, 2), RandomFloats(channels, 2, -0.5f, 0.5f),
          RandomFloats(channels, 3, 0.5f, 2), RandomFloats(2 * channels, 4, 0.3f, 1.5f),
          RandomFloats(count, 5, -1, 1)};
}

struct Statistics {
  Doubles mean, variance;
};

// Calls visit(element, channel) for a row-major tensor.
template <typename Visit>
void ForEachElement(const Dims& dims, Visit visit) {
  int64_t inner = 1;
  for (size_t d = 2; d < dims.size(); ++d) inner *= dims[d];
  for (int64_t i = 0; i < *ElementCount(dims); ++i) visit(i, i / inner % dims[1]);
}

Statistics StatisticsOf(const Dims& dims, const Doubles& x) {
  Statistics found{Doubles(dims[1], 0), Doubles(dims[1], 0)};
  const double count = static_cast<double>(x.size()) / static_cast<double>(dims[1]);
  ForEachElement(dims, [&](int64_t i, int64_t c) { found.mean[c] += x[i] / count; });
  ForEachElement(dims, [&](int64_t i, int64_t c) {
    found.variance[c] += (x[i] - found.mean[c]) * (x[i] - found.mean[c]) / count;
  });
  return found;
}

Doubles NormalizationOf(const Desc& desc, const ChannelValues& values, const Doubles& x,
                        const Doubles& weights) {
  const Dims& dims = desc.src.dims();
  const Statistics statistics = desc.use_global_stats
                                    ? Statistics{ToDoubles(values.mean), ToDoubles(values.variance)}
                                    : StatisticsOf(dims, x);
  Doubles y(x.size());
  ForEachElement(dims, [&](int64_t i, int64_t c) {
    y[i] = (x[i] - statistics.mean[c]) / std::sqrt(statistics.variance[c] + desc.epsilon);
    if (desc.use_scale_shift) y[i] = weights[c] * y[i] + weights[dims[1] + c];
    if (desc.fuse_relu && y[i] < 0) y[i] = 0;
  });
  return y;
}

// The outputs of forward for training: dst, the statistics (those given, or found) and bits.
struct NormalizationForward {
  MemoryDesc workspace;
  Bytes dst, mean, variance, bits;
};

NormalizationForward RunTraining(Desc desc, const ChannelValues& values) {
  desc.prop_kind = PropKind::kForwardTraining;
  desc.dst = desc.src;
  desc.diff_src = desc.diff_dst = desc.workspace = MemoryDesc();
  const auto primitive = CreateBatchNormalization(desc, {}, {});
  EXPECT_THAT(primitive, IsOk());
  NormalizationForward forward;
  if (!primitive.ok()) return forward;
  EXPECT_EQ((*primitive)->Writes(kArgMean), !desc.use_global_stats);
  const MemoryDesc channel = Plain({desc.src.dim(1)}), pairs = Plain({2, desc.src.dim(1)});
  forward.workspace = (*primitive)->Desc(kArgWorkspace);
  forward.bits = Garbage(forward.workspace, 3);
  forward.mean = desc.use_global_stats ? Pack(channel, values.mean) : Garbage(channel, 3);
  forward.variance = desc.use_global_stats ? Pack(channel, values.variance) : Garbage(channel, 3);
  const Bytes src = Pack(desc.src, values.x), weights = Pack(pairs, values.weights);
  forward.dst = Execute(**primitive,
                        {{kArgSrc, &src},
                         {kArgWeights, &weights},
                         {kArgMean, &forward.mean},
                         {kArgVariance, &forward.variance},
                         {kArgWorkspace, &forward.bits}},
                        kArgDst, Garbage(desc.dst, 7), threading::Team::Serial());
  return forward;
}

class BatchNormalizationBackwardTest : public RowTest<Desc> {
 protected:
  BatchNormalizationBackwardTest() : RowTest(CreateBatchNormalization) {}

  void ExpectDifferences(Desc desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " global ", desc.use_global_stats, " scale ",
                              desc.use_scale_shift, " relu ", desc.fuse_relu));
    const ChannelValues values = ValuesOf(desc.src.dims());
    const NormalizationForward forward = RunTraining(desc, values);
    desc.workspace = forward.workspace;
    const auto primitive = Create(desc);
    if (!primitive) return;
    const MemoryDesc pairs = Plain({2, desc.src.dim(1)});
    const Bytes src = Pack(desc.src, values.x), diff_dst = Pack(desc.diff_dst, values.dy);
    const Bytes weights = Pack(pairs, values.weights);
    const Inputs inputs = {{kArgSrc, &src},
                           {kArgDiffDst, &diff_dst},
                           {kArgWeights, &weights},
                           {kArgMean, &forward.mean},
                           {kArgVariance, &forward.variance},
                           {kArgWorkspace, &forward.bits}};
    ExpectSrc(desc, *primitive, inputs, values);
    ExpectWeights(desc, *primitive, inputs, values);
  }

  // Gradients by the given statistics, as if they were the batch's.
  void ExpectFormula(const Desc& desc) {
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Dims& dims = desc.src.dims();
    const ChannelValues values = ValuesOf(dims);
    const ByArgument found = RunGradient(*primitive, {{kArgSrc, values.x},
                                                      {kArgMean, values.mean},
                                                      {kArgVariance, values.variance},
                                                      {kArgWeights, values.weights},
                                                      {kArgDiffDst, values.dy}});
    const double count = static_cast<double>(values.x.size()) / static_cast<double>(dims[1]);
    Doubles r(dims[1]), means(2 * dims[1], 0), dx(values.x.size());  // of dy xh, of dy
    for (int64_t c = 0; c < dims[1]; ++c)
      r[c] = 1 / std::sqrt(static_cast<double>(values.variance[c]) + desc.epsilon);
    const auto normalized = [&](int64_t i, int64_t c) {
      return (static_cast<double>(values.x[i]) - values.mean[c]) * r[c];
    };
    ForEachElement(dims, [&](int64_t i, int64_t c) {
      means[c] += values.dy[i] * normalized(i, c) / count;
      means[dims[1] + c] += values.dy[i] / count;
    });
    ForEachElement(dims, [&](int64_t i, int64_t c) {
      dx[i] = values.dy[i];
      if (!desc.use_global_stats) dx[i] -= means[dims[1] + c] + normalized(i, c) * means[c];
      dx[i] *= values.weights[c] * r[c];
    });
    ExpectGradient(found.at(kArgDiffSrc), dx, 2e-5);
    if (desc.prop_kind != PropKind::kBackward) return;
    std::vector<float> dw = found.at(kArgDiffWeights);
    for (float& sum : dw) sum /= static_cast<float>(count);
    ExpectGradient(dw, means, 2e-5);
  }

 private:
  void ExpectSrc(const Desc& desc, const Created& primitive, Inputs inputs,
                 const ChannelValues& values) {
    const Bytes other = Garbage(Plain({2, desc.src.dim(1)}), 1);
    inputs.emplace_back(kArgDiffWeights, &other);
    const Bytes dx = ExecuteAllWays(primitive, inputs, kArgDiffSrc, Garbage(desc.diff_src, 7));
    const auto forward = [&](const Doubles& x) {
      return NormalizationOf(desc, values, x, ToDoubles(values.weights));
    };
    ExpectGradient(Unpack<float>(desc.diff_src, dx),
                   CentralDifferences(ToDoubles(values.x), values.dy, forward, 1e-6), 2e-5);
  }

  void ExpectWeights(const Desc& desc, const Created& primitive, Inputs inputs,
                     const ChannelValues& values) {
    const MemoryDesc pairs = Plain({2, desc.src.dim(1)});
    const bool writes = desc.prop_kind == PropKind::kBackward && desc.use_scale_shift;
    ASSERT_EQ(primitive.library->Writes(kArgDiffWeights), writes);
    if (!writes) return;
    const Bytes other = Garbage(desc.diff_src, 1);
    inputs.emplace_back(kArgDiffSrc, &other);
    const Bytes dw = ExecuteAllWays(primitive, inputs, kArgDiffWeights, Garbage(pairs, 7));
    const auto forward = [&](const Doubles& weights) {
      return NormalizationOf(desc, values, ToDoubles(values.x), weights);
    };
    ExpectGradient(Unpack<float>(pairs, dw),
                   CentralDifferences(ToDoubles(values.weights), values.dy, forward, 1e-6), 2e-5);
  }
};

Desc DescOf(PropKind prop_kind, const MemoryDesc& md) {
  Desc desc{prop_kind, md};
  desc.diff_src = desc.diff_dst = md;
  desc.epsilon = 1e-3f;
  return desc;
}

TEST_P(BatchNormalizationBackwardTest, CentralDifferencesWithEveryOption) {
  for (PropKind prop_kind : {PropKind::kBackward, PropKind::kBackwardData}) {
    for (int options = 0; options < 8; ++options) {
      for (const char* tag : {"nchw", "nChw8c", "nChw16c"}) {
        Desc desc = DescOf(prop_kind, Tagged({3, 4, 2, 3}, tag));
        desc.use_global_stats = (options & 1) != 0;
        desc.use_scale_shift = (options & 2) != 0;
        desc.fuse_relu = (options & 4) != 0;
        ExpectDifferences(desc);
      }
    }
  }
}

TEST_P(BatchNormalizationBackwardTest, EveryLayout) {
  for (const Dims& dims : {Dims{5, 3}, Dims{2, 17, 3}, Dims{2, 9, 2, 2}, Dims{2, 2, 2, 1, 3}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      Desc desc = DescOf(PropKind::kBackward, layout.desc);
      desc.use_global_stats = false;
      for (bool relu : {false, true}) {
        desc.fuse_relu = relu;
        ExpectDifferences(desc);
      }
    }
  }
}

// Several pieces of pixels, one, three and eight images, blocks that channels fill and that they do
// not: the gradients of the formula, the same on 1, 2 and 7 threads.
TEST_P(BatchNormalizationBackwardTest, ManyPixels) {
  for (const Dims& dims :
       {Dims{1, 17, 17, 18}, Dims{3, 24, 9, 11}, Dims{8, 40, 2, 3}, Dims{8, 32}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      for (PropKind prop_kind : {PropKind::kBackward, PropKind::kBackwardData}) {
        for (bool global : {false, true}) {
          SCOPED_TRACE(absl::StrCat(layout.why, " ", PropKindName(prop_kind), " global ", global));
          Desc desc = DescOf(prop_kind, layout.desc);
          desc.use_global_stats = global;
          ExpectFormula(desc);
        }
      }
    }
  }
}

// The elements of diff_src.
std::vector<std::vector<float>> GradientsWhereverTheyBegin(const Created& primitive,
                                                           const MemoryDesc& md) {
  const ChannelValues values = ValuesOf(md.dims());
  const MemoryDesc channel = Plain({md.dim(1)}), pairs = Plain({2, md.dim(1)});
  const Bytes src = Pack(md, values.x), dy = Pack(md, values.dy);
  const Bytes mean = Pack(channel, values.mean), variance = Pack(channel, values.variance);
  const Bytes weights = Pack(pairs, values.weights);
  Bytes diff_weights = Garbage(pairs, 1);
  ExecuteArgs args;
  args.Set(kArgSrc, src.data()).Set(kArgDiffDst, dy.data()).Set(kArgMean, mean.data());
  args.Set(kArgVariance, variance.data()).Set(kArgWeights, weights.data());
  args.Set(kArgDiffWeights, diff_weights.data());
  return WrittenWhereverItBegins(primitive, args, kArgDiffSrc, md);
}

// A gradient larger than caches is written past them where it begins with a line.
TEST_P(BatchNormalizationBackwardTest, LargeTensorsHaveTheSameBitsWhereverTheyBegin) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "has one way to write";
  const MemoryDesc md = Tagged({2, 48, 150, 150}, "nChw16c");
  Desc desc = DescOf(PropKind::kBackward, md);
  desc.use_global_stats = false;
  ExpectFormula(desc);
  const auto primitive = Create(desc);
  if (!primitive) return;
  const auto found = GradientsWhereverTheyBegin(*primitive, md);
  EXPECT_TRUE(found.at(0) == found.at(1));
}

// Vectors of such pixels are not aligned, though the first one is.
TEST_P(BatchNormalizationBackwardTest, LargeTensorsMayHaveGapsBetweenPixels) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "has one way to write";
  std::vector<std::vector<float>> found;
  for (int64_t gap : {0, 4}) {
    const MemoryDesc md = ChannelsLastWithGaps({1, 48, 210, 210}, gap, 0);
    Desc desc = DescOf(PropKind::kBackward, md);
    desc.use_global_stats = false;
    const auto primitive = Create(desc);
    if (!primitive) continue;
    for (auto& elements : GradientsWhereverTheyBegin(*primitive, md))
      found.push_back(std::move(elements));
  }
  for (const auto& elements : found) EXPECT_TRUE(elements == found[0]);
}

TEST_P(BatchNormalizationBackwardTest, AnyIsTheLayoutOfTheSource) {
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw16c");
  Desc desc = DescOf(PropKind::kBackwardData, src);
  desc.diff_src = desc.diff_dst = *MemoryDesc::CreateAny(src.dims(), DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDiffSrc), src);
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(BatchNormalization);

TEST(BatchNormalizationTrainingTest, WritesWhatItFindsAndBits) {
  for (const Dims& dims : {Dims{5, 3}, Dims{2, 17, 3, 3}}) {
    const ChannelValues values = ValuesOf(dims);
    const Statistics expected = StatisticsOf(dims, ToDoubles(values.x));
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      Desc desc = DescOf(PropKind::kBackward, layout.desc);
      desc.use_global_stats = false;
      desc.fuse_relu = true;
      const NormalizationForward forward = RunTraining(desc, values);
      const MemoryDesc channel = Plain({dims[1]});
      ExpectGradient(Unpack<float>(channel, forward.mean), expected.mean, 1e-6);
      ExpectGradient(Unpack<float>(channel, forward.variance), expected.variance, 1e-6);
      const Doubles y =
          NormalizationOf(desc, values, ToDoubles(values.x), ToDoubles(values.weights));
      ExpectGradient(Unpack<float>(desc.src, forward.dst), y, 1e-5);
      int passed = 0, bits = 0;
      for (double value : y) passed += value > 0;
      for (uint8_t byte : forward.bits) bits += __builtin_popcount(byte);
      EXPECT_EQ(bits, passed);
    }
  }
}

TEST(BatchNormalizationBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateBatchNormalization);
  const MemoryDesc md = Plain({2, 4, 3, 3}), bytes = Plain({2, 4, 3, 3}, DataType::kS8);
  Desc relu = DescOf(PropKind::kBackward, md);
  relu.fuse_relu = true;
  EXPECT_THAT(status(relu), StatusIs(kInvalid, "has to run as forward_training"));
  relu.workspace = RunTraining(relu, ValuesOf(md.dims())).workspace;
  EXPECT_THAT(status(relu), IsOk());
  Desc other = DescOf(PropKind::kBackward, Plain({2, 4, 3, 5}));
  other.fuse_relu = true;
  other.workspace = relu.workspace;
  EXPECT_THAT(status(other), StatusIs(kInvalid, "of another problem"));
  other.fuse_relu = false;
  EXPECT_THAT(status(other), StatusIs(kInvalid, "saves none"));
  Desc with_dst = DescOf(PropKind::kBackward, md);
  with_dst.dst = md;
  EXPECT_THAT(status(with_dst), StatusIs(kInvalid, "dst f32:2x4x3x3:"));
  EXPECT_THAT(status(DescOf(PropKind::kBackward, bytes)), StatusIs(kUnimplemented, "not s8"));
  EXPECT_THAT(status(DescOf(PropKind::kBackwardWeights, md)),
              StatusIs(kUnimplemented, "does not run backward_weights"));
  Attributes post_op;
  ASSERT_THAT(post_op.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(status({PropKind::kForwardTraining, md, md}, post_op),
              StatusIs(kUnimplemented, "fuse_relu saves"));
}

}  // namespace
}  // namespace tilewire::testing
