// SPDX-License-Identifier: Apache-2.0
//
// Every row of layer normalization's table against the formula in double precision.
#include "engine/primitives/layer_normalization/layer_normalization.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr auto kInference = PropKind::kForwardInference;

class LayerNormalizationTest : public RowTest<LayerNormalizationDesc> {
 protected:
  LayerNormalizationTest() : RowTest(CreateLayerNormalization) {}

  std::optional<std::vector<float>> Normalize(const LayerNormalizationDesc& desc,
                                              const std::vector<float>& values) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const int64_t size = desc.src.dim(desc.src.rank() - 1);
    const int64_t rows = size == 0 ? 0 : desc.src.ElementCount() / size;
    const Bytes src = Pack(desc.src, values), mean = Pack(Plain({rows}), Means(rows)),
                variance = Pack(Plain({rows}), Variances(rows)),
                scale_shift = Pack(Plain({2 * size}), ScaleShift(size));
    Inputs inputs = {{kArgSrc, &src}};
    if (desc.use_global_stats) {
      inputs.push_back({kArgMean, &mean});
      inputs.push_back({kArgVariance, &variance});
    }
    if (desc.use_scale_shift) inputs.push_back({kArgWeights, &scale_shift});
    return Unpack<float>(desc.dst,
                         ExecuteAllWays(*primitive, inputs, kArgDst, Garbage(desc.dst, 7)));
  }

  static std::vector<float> Means(int64_t rows) { return RandomFloats(rows, 11, -1, 1); }
  static std::vector<float> Variances(int64_t rows) { return RandomFloats(rows, 12, 0.1f, 4); }
  static std::vector<float> ScaleShift(int64_t size) { return RandomFloats(2 * size, 13, -2, 2); }

  // The mean of n numbers is off by n roundings of their mean magnitude, which the quotient by the
  // deviation carries over; the variance by 2 n relative, of which the root takes half.
  void ExpectFormula(const LayerNormalizationDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString()));
    const std::vector<float> values = RandomFloats(desc.src.ElementCount(), 1, -3, 3);
    const auto result = Normalize(desc, values);
    if (!result || result->empty()) return;
    const int64_t size = desc.src.dim(desc.src.rank() - 1);
    const int64_t rows = static_cast<int64_t>(values.size()) / size;
    const auto means = Means(rows), variances = Variances(rows), weights = ScaleShift(size);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = &values[r * size];
      double mean = 0, variance = 0;
      for (int64_t c = 0; c < size; ++c) mean += row[c] / static_cast<double>(size);
      for (int64_t c = 0; c < size; ++c) {
        variance += (row[c] - mean) * (row[c] - mean) / static_cast<double>(size);
      }
      if (desc.use_global_stats) {
        mean = means[r];
        variance = variances[r];
      }
      const double factor = 1 / std::sqrt(variance + desc.epsilon);
      for (int64_t c = 0; c < size; ++c) {
        const double scale = desc.use_scale_shift ? weights[c] : 1;
        const double shift = desc.use_scale_shift ? weights[size + c] : 0;
        const double want = scale * (row[c] - mean) * factor + shift;
        const double tolerance =
            (size + 8.0) * 0x1p-24 *
            (std::abs(scale) * (std::abs(row[c]) + 3) * factor + std::abs(shift));
        ASSERT_NEAR((*result)[r * size + c], want, tolerance) << "row " << r << " element " << c;
      }
    }
  }
};

TEST_P(LayerNormalizationTest, EveryLayoutAndFlag) {
  for (const Dims& dims : {Dims{2, 17, 5}, Dims{2, 3, 4, 40}, Dims{1, 33, 2, 1, 3}, Dims{3, 70}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (bool given : {false, true}) {
        for (bool scale_shift : {false, true}) {
          LayerNormalizationDesc desc{kInference, layout.desc, layout.desc,
                                      1e-3f,      given,       scale_shift};
          ExpectFormula(desc);
          desc.dst = Plain(dims);
          ExpectFormula(desc);
        }
      }
    }
  }
}

TEST_P(LayerNormalizationTest, EveryLengthOfARow) {
  for (int64_t size : {1, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 128, 200, 768, 1000}) {
    ExpectFormula({kInference, Plain({5, size}), Plain({5, size})});
  }
  ExpectFormula({kInference, Plain({0, 8}), Plain({0, 8})});
}

// Training writes the statistics of rows, and the bits of inference.
TEST_P(LayerNormalizationTest, TrainingWritesTheStatisticsOfRows) {
  for (const Dims& dims : {Dims{3, 4, 7}, Dims{40, 96}, Dims{2, 3, 1}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(absl::StrCat(layout.why, " ", layout.desc.ToString()));
      const LayerNormalizationDesc desc{PropKind::kForwardTraining, layout.desc, layout.desc};
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const int64_t size = dims.back(), rows = desc.src.ElementCount() / size;
      const std::vector<float> values = RandomFloats(rows * size, 1, -3, 3);
      const MemoryDesc statistics = primitive->Desc(kArgMean);
      const Bytes src = Pack(desc.src, values), weights = Pack(Plain({2 * size}), ScaleShift(size));
      const Bytes mean = Garbage(statistics, 1), variance = Garbage(statistics, 2);
      const Bytes dst = Garbage(desc.dst, 3);
      const Inputs inputs = {{kArgSrc, &src},
                             {kArgWeights, &weights},
                             {kArgMean, &mean},
                             {kArgVariance, &variance},
                             {kArgDst, &dst}};
      const auto output = [&](int arg, const MemoryDesc& md) {
        return Unpack<float>(md, ExecuteAllWays(*primitive, inputs, arg, Garbage(md, 7)));
      };
      LayerNormalizationDesc inference = desc;
      inference.prop_kind = kInference;
      EXPECT_EQ(BitsOf(output(kArgDst, desc.dst)), BitsOf(*Normalize(inference, values)));
      const auto means = output(kArgMean, statistics), squares = output(kArgVariance, statistics);
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0, deviations = 0;
        for (int64_t c = 0; c < size; ++c) sum += values[r * size + c];
        for (int64_t c = 0; c < size; ++c)
          deviations += std::pow(values[r * size + c] - sum / static_cast<double>(size), 2);
        const double tolerance = (static_cast<double>(size) + 8) * 0x1p-24 * 3;
        EXPECT_NEAR(means[r], sum / static_cast<double>(size), tolerance);
        EXPECT_NEAR(squares[r], deviations / static_cast<double>(size), 6 * tolerance);
      }
    }
  }
}

TEST_P(LayerNormalizationTest, ARowOfEqualNumbersIsItsShift) {
  const MemoryDesc md = Plain({2, 20});
  const auto result =
      Normalize({kInference, md, md, 1e-5f, false, false}, std::vector<float>(40, 3.0f));
  ASSERT_TRUE(result);
  for (float value : *result) EXPECT_EQ(value, 0);
}

// The bits of the sum, and those of normalizing it alone; also where the sum replaces a source.
TEST_P(LayerNormalizationTest, ASumThatIsNormalizedAtOnce) {
  for (const Dims& dims : {Dims{6, 40}, Dims{2, 3, 4, 100}, Dims{5, 1}, Dims{40, 768}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(absl::StrCat(layout.why, " ", layout.desc.ToString()));
      const MemoryDesc plain = Plain(dims);
      const std::vector<float> a = RandomFloats(plain.ElementCount(), 1, -3, 3);
      const std::vector<float> b = RandomFloats(plain.ElementCount(), 2, -3, 3);
      std::vector<float> sums(a.size());
      for (size_t i = 0; i < a.size(); ++i) sums[i] = a[i] + b[i];
      const auto alone = Normalize({kInference, plain, plain}, sums);
      LayerNormalizationDesc desc{kInference, plain, plain};
      desc.addend = layout.desc;
      desc.sum = MemoryDesc::CreateAny(dims, DataType::kF32).value();
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const MemoryDesc& sum = primitive->Desc(kArgMultipleDst);
      const Bytes src = Pack(plain, a), addend = Pack(layout.desc, b), empty = Garbage(sum, 3),
                  result = Garbage(plain, 4),
                  weights = Pack(Plain({2 * dims.back()}), ScaleShift(dims.back()));
      const Inputs inputs = {{kArgSrc, &src},
                             {kArgSrc1, &addend},
                             {kArgWeights, &weights},
                             {kArgMultipleDst, &empty},
                             {kArgDst, &result}};
      EXPECT_EQ(
          BitsOf(Unpack<float>(sum, ExecuteAllWays(*primitive, inputs, kArgMultipleDst, empty))),
          BitsOf(sums));
      ASSERT_TRUE(alone);
      EXPECT_EQ(BitsOf(Unpack<float>(plain, ExecuteAllWays(*primitive, inputs, kArgDst, result))),
                BitsOf(*alone));
      Bytes both = src, normal = result;
      ExecuteArgs args;
      args.Set(kArgSrc, both.data()).Set(kArgSrc1, addend.data()).Set(kArgDst, normal.data());
      args.Set(kArgWeights, weights.data()).Set(kArgMultipleDst, both.data());
      ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
      EXPECT_EQ(BitsOf(Unpack<float>(sum, both)), BitsOf(sums));
      EXPECT_EQ(BitsOf(Unpack<float>(plain, normal)), BitsOf(*alone));
    }
  }
}

TEST_P(LayerNormalizationTest, RowsDoNotDependOnTheBatch) {
  const auto values = RandomFloats(9 * 100, 1);
  const auto all = Normalize({kInference, Plain({9, 100}), Plain({9, 100})}, values);
  ASSERT_TRUE(all);
  for (int n = 0; n < 9; ++n) {
    const auto one = Normalize({kInference, Plain({1, 100}), Plain({1, 100})},
                               {values.begin() + n * 100, values.begin() + (n + 1) * 100});
    EXPECT_EQ(BitsOf(*one), BitsOf({all->begin() + n * 100, all->begin() + (n + 1) * 100}));
  }
}

TILEWIRE_TEST_EVERY_ROW(LayerNormalization);

TEST(LayerNormalizationErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc md = Plain({2, 3});
  const auto status = StatusOfCreating(CreateLayerNormalization);
  EXPECT_THAT(status({kInference, md, Plain({2, 4})}), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status({kInference, Plain({5}), Plain({5})}), StatusIs(kInvalid, "rank 1"));
  EXPECT_THAT(status({kInference, md, md, std::numeric_limits<float>::quiet_NaN()}),
              StatusIs(kInvalid, "epsilon"));
  LayerNormalizationDesc added{kInference, md, md};
  added.addend = md;
  EXPECT_THAT(status(added), StatusIs(kInvalid, "addend and sum go together"));
  added.sum = Plain({3, 2});
  EXPECT_THAT(status(added), StatusIs(kInvalid, "sum"));
  added.sum = md;
  added.use_global_stats = true;
  EXPECT_THAT(status(added), StatusIs(kInvalid, "given statistics"));
  EXPECT_THAT(status({PropKind::kForwardTraining, md, md}), IsOk());
  const MemoryDesc bytes = Plain({2, 3}, DataType::kS8);
  EXPECT_THAT(status({kInference, bytes, bytes}), StatusIs(kUnimplemented, "s8"));
}

}  // namespace
}  // namespace tilewire::testing
