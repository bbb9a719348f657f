// SPDX-License-Identifier: Apache-2.0
//
// Every row of batch normalization's table against the formula in double precision.
#include "engine/primitives/batch_normalization/batch_normalization.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct Channels {
  std::vector<float> mean, variance, scale_shift;
};

Channels RandomChannels(int64_t count) {
  return {RandomFloats(count, 11, -2, 2), RandomFloats(count, 12, 0.1f, 4),
          RandomFloats(2 * count, 13, -2, 2)};
}

Bytes BytesOfFloats(const std::vector<float>& values) {
  return Pack(Plain({static_cast<int64_t>(values.size())}), values);
}

class BatchNormalizationTest : public RowTest<BatchNormalizationDesc> {
 protected:
  BatchNormalizationTest() : RowTest(CreateBatchNormalization) {}

  // The line a x + b has a and b rounded once each and one rounding of its own.
  void ExpectFormula(const BatchNormalizationDesc& desc, const Attributes& attributes = {}) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString()));
    const auto primitive = Create(desc, attributes);
    if (!primitive) return;
    const int64_t channels = desc.src.dim(1);
    const Channels given = RandomChannels(channels);
    const std::vector<float> values = RandomFloats(desc.src.ElementCount(), 1, -3, 3);
    const Bytes src = Pack(desc.src, values), mean = BytesOfFloats(given.mean),
                variance = BytesOfFloats(given.variance),
                scale_shift = BytesOfFloats(given.scale_shift);
    Inputs inputs = {{kArgSrc, &src}};
    if (desc.use_global_stats)
      inputs.insert(inputs.end(), {{kArgMean, &mean}, {kArgVariance, &variance}});
    if (desc.use_scale_shift) inputs.push_back({kArgWeights, &scale_shift});
    const std::vector<float> result =
        Unpack<float>(desc.dst, ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
    const Channels used = desc.use_global_stats ? given : Statistics(desc, values);
    const bool relu = desc.fuse_relu || !attributes.post_ops.empty();
    size_t i = 0;
    ForEachIndex(desc.src.dims(), [&](const Dims& index) {
      const int64_t c = index[1];
      const double scale = (desc.use_scale_shift ? given.scale_shift[c] : 1) /
                           std::sqrt(static_cast<double>(used.variance[c]) + desc.epsilon);
      const double shift = desc.use_scale_shift ? given.scale_shift[channels + c] : 0;
      double want = scale * (static_cast<double>(values[i]) - used.mean[c]) + shift;
      const double terms =
          std::abs(scale * values[i]) + std::abs(scale * used.mean[c]) + std::abs(shift);
      if (relu) want = std::max(want, 0.0);
      ASSERT_NEAR(result[i], want, 4 * 0x1p-24 * terms) << "element " << i;
      ++i;
    });
  }

  // Rounded to float, as the tolerance allows: one more rounding of mean and variance.
  static Channels Statistics(const BatchNormalizationDesc& desc, const std::vector<float>& values) {
    const int64_t channels = desc.src.dim(1);
    const double count = static_cast<double>(values.size()) / channels;
    std::vector<double> mean(channels), variance(channels);
    size_t i = 0;
    ForEachIndex(desc.src.dims(), [&](const Dims& at) { mean[at[1]] += values[i++] / count; });
    i = 0;
    ForEachIndex(desc.src.dims(), [&](const Dims& at) {
      variance[at[1]] += std::pow(values[i++] - mean[at[1]], 2) / count;
    });
    return {{mean.begin(), mean.end()}, {variance.begin(), variance.end()}, {}};
  }
};

TEST_P(BatchNormalizationTest, EveryLayoutAndFlag) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      BatchNormalizationDesc desc{PropKind::kForwardInference, layout.desc, layout.desc};
      ExpectFormula(desc);
      desc.fuse_relu = true;
      ExpectFormula(desc);
      desc.use_scale_shift = false;
      ExpectFormula(desc);
      desc.dst = Plain(dims);
      ExpectFormula(desc);
    }
  }
}

TEST_P(BatchNormalizationTest, ModelShapes) {
  for (const Dims& dims :
       {Dims{4, 10, 6, 6}, Dims{16, 32, 16, 16}, Dims{3, 70}, Dims{0, 8, 2, 2}}) {
    const std::string spatial = dims.size() == 2 ? "" : "cd";
    for (const std::string& pattern :
         {"ab" + spatial, "a" + spatial + "b", "aB" + spatial + "8b", "aB" + spatial + "16b"}) {
      const MemoryDesc md = *MemoryDesc::CreatePattern(dims, DataType::kF32, pattern);
      ExpectFormula({PropKind::kForwardInference, md, md, 1e-3f});
      if (dims[0] > 0) {
        ExpectFormula({PropKind::kForwardInference, md, md, 1e-3f, /*use_global_stats=*/false});
      }
    }
  }
}

TEST_P(BatchNormalizationTest, TakesOneReluAsPostOp) {
  const MemoryDesc md = Plain({2, 5, 3, 3});
  Attributes attributes;
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{}), IsOk());
  ExpectFormula({PropKind::kForwardInference, md, md}, attributes);
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_FALSE(Create({PropKind::kForwardInference, md, md}, attributes));
}

TEST_P(BatchNormalizationTest, MayRunInPlace) {
  const MemoryDesc md = Tagged({2, 19, 3, 5}, "nChw16c");
  const auto primitive = Create({PropKind::kForwardInference, md, md, 1e-5f, true, false});
  if (!primitive) return;
  const Channels given = RandomChannels(19);
  const Bytes mean = BytesOfFloats(given.mean), variance = BytesOfFloats(given.variance);
  const Bytes src = Pack(md, RandomFloats(md.ElementCount(), 1));
  const Inputs statistics = {{kArgMean, &mean}, {kArgVariance, &variance}};
  Inputs inputs = statistics;
  inputs.push_back({kArgSrc, &src});
  const Bytes apart = ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(md, 3));
  Bytes both = src;
  ExecuteArgs args;
  for (const auto& [arg, bytes] : statistics) args.Set(arg, bytes->data());
  args.Set(kArgSrc, both.data()).Set(kArgDst, both.data());
  ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
  EXPECT_EQ(both, apart);
}

TILEWIRE_TEST_EVERY_ROW(BatchNormalization);

TEST(BatchNormalizationErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kInference = PropKind::kForwardInference;
  const MemoryDesc md = Plain({2, 3, 4, 4});
  const auto status = StatusOfCreating(CreateBatchNormalization);
  EXPECT_THAT(status({kInference, md, Plain({2, 3, 4, 5})}), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status({kInference, Plain({5}), Plain({5})}), StatusIs(kInvalid, "rank 1"));
  EXPECT_THAT(status({kInference, md, md, std::numeric_limits<float>::infinity()}),
              StatusIs(kInvalid, "epsilon"));
  EXPECT_THAT(status({PropKind::kForwardTraining, md, md}), IsOk());
  const MemoryDesc bytes = Plain({2, 3, 4, 4}, DataType::kS8);
  EXPECT_THAT(status({kInference, bytes, bytes}), StatusIs(kUnimplemented, "s8"));
}

}  // namespace
}  // namespace tilewire::testing
