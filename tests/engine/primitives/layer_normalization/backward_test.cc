// SPDX-License-Identifier: Apache-2.0
//
// Training and backward of layer normalization: statistics, and gradients of src, scale and shift
// by central differences.
#include <cmath>

#include "engine/primitives/layer_normalization/layer_normalization.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using RowDesc = LayerNormalizationDesc;

struct RowValues {
  std::vector<float> x, mean, variance, weights, dy;
};

RowValues RowValuesOf(const Dims& dims) {
  const int64_t count = *ElementCount(dims), size = dims.back(), rows = count / size;
  return {RandomFloats(count, 1, -2, 2), RandomFloats(rows, 2, -0.5f, 0.5f),
          RandomFloats(rows, 3, 0.5f, 2), RandomFloats(2 * size, 4, 0.3f, 1.5f),
          RandomFloats(count, 5, -1, 1)};
}

void StatisticsOfRow(const double* x, int64_t size, double* mean, double* variance) {
  *mean = *variance = 0;
  for (int64_t c = 0; c < size; ++c) *mean += x[c] / static_cast<double>(size);
  for (int64_t c = 0; c < size; ++c)
    *variance += (x[c] - *mean) * (x[c] - *mean) / static_cast<double>(size);
}

Doubles RowsOf(const RowDesc& desc, const RowValues& values, const Doubles& x,
               const Doubles& weights) {
  const int64_t size = desc.src.dims().back(), rows = static_cast<int64_t>(x.size()) / size;
  Doubles y;
  for (int64_t row = 0; row < rows; ++row) {
    double mean = values.mean[row], variance = values.variance[row];
    if (!desc.use_global_stats) StatisticsOfRow(&x[row * size], size, &mean, &variance);
    for (int64_t c = 0; c < size; ++c) {
      const double normal = (x[row * size + c] - mean) / std::sqrt(variance + desc.epsilon);
      y.push_back(desc.use_scale_shift ? weights[c] * normal + weights[size + c] : normal);
    }
  }
  return y;
}

struct RowGradients {
  Doubles src, weights;
};

RowGradients DifferencesOf(const RowDesc& desc, const RowValues& values) {
  const auto by_src = [&](const Doubles& x) {
    return RowsOf(desc, values, x, ToDoubles(values.weights));
  };
  const auto by_weights = [&](const Doubles& at) {
    return RowsOf(desc, values, ToDoubles(values.x), at);
  };
  return {CentralDifferences(ToDoubles(values.x), values.dy, by_src),
          CentralDifferences(ToDoubles(values.weights), values.dy, by_weights)};
}

// The header's formula, for statistics that are the rows' own, with scale and shift.
RowGradients FormulaOf(const RowDesc& desc, const RowValues& values) {
  const int64_t size = desc.src.dims().back(), rows = static_cast<int64_t>(values.mean.size());
  RowGradients gradients = {Doubles(rows * size), Doubles(2 * size)};
  for (int64_t row = 0; row < rows; ++row) {
    const float *x = &values.x[row * size], *dy = &values.dy[row * size];
    const double r = 1 / std::sqrt(static_cast<double>(values.variance[row]) + desc.epsilon);
    double level = 0, share = 0;
    for (int64_t c = 0; c < size; ++c) {
      const double normal = (x[c] - static_cast<double>(values.mean[row])) * r;
      const double g = static_cast<double>(values.weights[c]) * dy[c];
      level += g / static_cast<double>(size);
      share += g * normal / static_cast<double>(size);
      gradients.weights[c] += dy[c] * normal;
      gradients.weights[size + c] += dy[c];
    }
    for (int64_t c = 0; c < size; ++c) {
      const double normal = (x[c] - static_cast<double>(values.mean[row])) * r;
      const double g = static_cast<double>(values.weights[c]) * dy[c];
      gradients.src[row * size + c] = r * (g - level - normal * share);
    }
  }
  return gradients;
}

class LayerNormalizationBackwardTest : public RowTest<RowDesc> {
 protected:
  LayerNormalizationBackwardTest() : RowTest(CreateLayerNormalization) {}

  void ExpectDifferences(const RowDesc& desc) { ExpectGradients(desc, DifferencesOf); }

  void ExpectGradients(const RowDesc& desc,
                       RowGradients (*expected_of)(const RowDesc&, const RowValues&)) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " global ", desc.use_global_stats, " scale ",
                              desc.use_scale_shift));
    const auto primitive = Create(desc);
    if (!primitive) return;
    RowValues values = RowValuesOf(desc.src.dims());
    SetStatistics(desc, &values);
    const RowGradients expected = expected_of(desc, values);
    const MemoryDesc rows = primitive->Desc(kArgMean), pairs = Plain({2, desc.src.dims().back()});
    const Bytes src = Pack(desc.src, values.x), diff_dst = Pack(desc.diff_dst, values.dy);
    const Bytes weights = Pack(pairs, values.weights);
    const Bytes mean = Pack(rows, values.mean), variance = Pack(rows, values.variance);
    Inputs inputs = {{kArgSrc, &src},
                     {kArgDiffDst, &diff_dst},
                     {kArgWeights, &weights},
                     {kArgMean, &mean},
                     {kArgVariance, &variance}};
    const Bytes other_src = Garbage(desc.diff_src, 1), other_weights = Garbage(pairs, 1);
    inputs.emplace_back(kArgDiffWeights, &other_weights);
    const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(desc.diff_src, 7));
    // The statistics that it reads are rounded, too.
    const double tolerance = 2 * GradientTolerance(GetParam().traits.is_reference);
    ExpectGradient(Unpack<float>(desc.diff_src, dx), expected.src, tolerance);
    const bool writes = desc.prop_kind == PropKind::kBackward && desc.use_scale_shift;
    ASSERT_EQ(primitive->library->Writes(kArgDiffWeights), writes);
    if (!writes) return;
    inputs.back() = {kArgDiffSrc, &other_src};
    const Bytes dw = ExecuteAllWays(*primitive, inputs, kArgDiffWeights, Garbage(pairs, 7));
    ExpectGradient(Unpack<float>(pairs, dw), expected.weights, tolerance);
  }

  static RowDesc DescOf(PropKind prop_kind, const MemoryDesc& md) {
    RowDesc desc{prop_kind, md};
    desc.diff_src = desc.diff_dst = md;
    desc.epsilon = 1e-3f;
    return desc;
  }

 private:
  // The statistics of forward, where they are not given.
  static void SetStatistics(const RowDesc& desc, RowValues* values) {
    if (desc.use_global_stats) return;
    const Doubles x = ToDoubles(values->x);
    const int64_t size = desc.src.dims().back();
    for (size_t row = 0; row < values->mean.size(); ++row) {
      double mean = 0, variance = 0;
      StatisticsOfRow(&x[row * size], size, &mean, &variance);
      values->mean[row] = static_cast<float>(mean);
      values->variance[row] = static_cast<float>(variance);
    }
  }
};

TEST_P(LayerNormalizationBackwardTest, CentralDifferencesWithEveryOption) {
  for (PropKind prop_kind : {PropKind::kBackward, PropKind::kBackwardData}) {
    for (int options = 0; options < 4; ++options) {
      RowDesc desc = DescOf(prop_kind, Plain({3, 2, 5}));
      desc.use_global_stats = (options & 1) != 0;
      desc.use_scale_shift = (options & 2) != 0;
      ExpectDifferences(desc);
    }
  }
}

TEST_P(LayerNormalizationBackwardTest, EveryLayout) {
  for (const Dims& dims : {Dims{5, 3}, Dims{2, 17, 3}, Dims{2, 3, 2, 9}, Dims{2, 2, 2, 1, 3}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      ExpectDifferences(DescOf(PropKind::kBackward, layout.desc));
    }
  }
}

TEST_P(LayerNormalizationBackwardTest, SizesAroundVectors) {
  for (int64_t size : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 100, 129, 768, 1000})
    ExpectGradients(DescOf(PropKind::kBackward, Plain({3, size})), FormulaOf);
  const RowDesc empty = DescOf(PropKind::kBackward, Plain({0, 20}));
  ExpectGradients(empty, FormulaOf);
}

TEST_P(LayerNormalizationBackwardTest, RowsAroundPieces) {
  for (int64_t rows : {1, 63, 64, 65, 130, 16500})
    ExpectGradients(DescOf(PropKind::kBackward, Plain({rows, 5})), FormulaOf);
}

// Rows at other distances in each tensor.
TEST_P(LayerNormalizationBackwardTest, LayoutsThatDiffer) {
  RowDesc desc = DescOf(PropKind::kBackward, Plain({2, 3, 20}));
  desc.src = *MemoryDesc::CreateStrided({2, 3, 20}, DataType::kF32, {90, 25, 1});
  desc.diff_src = *MemoryDesc::CreateStrided({2, 3, 20}, DataType::kF32, {64, 20, 1});
  ExpectGradients(desc, FormulaOf);
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(LayerNormalization);

TEST(LayerNormalizationBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateLayerNormalization);
  const MemoryDesc md = Plain({4, 6});
  RowDesc desc{PropKind::kBackward, md};
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "diff_dst is missing"));
  desc.diff_dst = md;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "diff_src is missing"));
  desc.diff_src = md;
  EXPECT_THAT(status(desc), IsOk());
  desc.dst = md;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "dst f32:4x6:nc is given to backward"));
  RowDesc training{PropKind::kForwardTraining, md, md};
  training.addend = training.sum = md;
  EXPECT_THAT(status(training), StatusIs(kInvalid, "addend f32:4x6:nc"));
}

}  // namespace
}  // namespace tilewire::testing
