// SPDX-License-Identifier: Apache-2.0
//
// Every row of deconvolution's table: on small integers, whose sums are exact in any order, against
// the formula as a scatter; on random numbers against the reference, within K 2^-24 of the sum of
// magnitudes for K products.
#include "engine/primitives/deconvolution/deconvolution.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

struct Case {
  const char* why;
  int64_t batch, groups, ic, oc;  // channels per group
  Dims in, kernel, strides, dilations, left, right;
};

// Cases that the rows for few outputs take.
std::vector<Case> FewOutputsCases() {
  return {
      {"few outputs: a mask", 2, 1, 24, 1, {5, 9}, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},
      {"few outputs: several tiles of two rows",
       1,
       1,
       37,
       2,
       {7, 29},
       {2, 2},
       {2, 2},
       {0, 0},
       {0, 0},
       {0, 0}},
      {"few outputs, two rows", 1, 1, 16, 1, {5, 23}, {2, 1}, {2, 1}, {0, 0}, {0, 0}, {0, 0}},
      {"few outputs: DCGAN's last", 1, 1, 40, 3, {5, 6}, {4, 4}, {2, 2}, {0, 0}, {1, 1}, {1, 1}},
      {"few outputs, 3D", 1, 1, 18, 1, {3, 4, 5}, {2, 2, 3}, {2, 1, 2}, Dims(3), Dims(3), Dims(3)},
      {"few outputs: 5 side by side", 1, 1, 33, 2, {9, 4}, {5, 5}, {5, 5}, {0, 0}, {0, 0}, {0, 0}},
      {"few outputs: 3 side by side", 1, 1, 20, 1, {4, 11}, {3, 3}, {3, 3}, {0, 0}, {0, 0}, {0, 0}},
      {"few outputs of a row, 3 apart", 1, 1, 32, 1, {67}, {3}, {3}, {0}, {0}, {0}},
      {"few outputs, dilated", 1, 1, 17, 2, {7, 21}, {3, 3}, {1, 1}, {1, 0}, {1, 1}, {1, 1}},
  };
}

std::vector<Case> OtherCases() {
  return {
      {"one pixel becomes the kernel", 1, 1, 1, 1, {1, 1}, {3, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}},
      {"U-Net's upsampling", 2, 1, 32, 16, {3, 5}, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},
      {"DCGAN's: 4x4, stride 2", 1, 1, 24, 40, {4, 4}, {4, 4}, {2, 2}, {0, 0}, {1, 1}, {1, 1}},
      {"stride 1, padded", 1, 1, 17, 33, {3, 25}, {3, 3}, {1, 1}, {0, 0}, {1, 1}, {1, 1}},
      {"kernel smaller than the stride",
       1,
       1,
       3,
       5,
       {4, 5},
       {1, 2},
       {3, 4},
       {0, 0},
       {0, 0},
       {0, 0}},
      {"paddings that differ", 2, 1, 8, 24, {5, 6}, {5, 3}, {2, 3}, {0, 0}, {2, 0}, {1, 1}},
      {"dilated", 1, 1, 16, 16, {6, 7}, {3, 3}, {2, 1}, {1, 2}, {1, 2}, {2, 1}},
      {"a wide row", 1, 1, 9, 80, {1, 61}, {3, 3}, {2, 2}, {0, 0}, {1, 1}, {0, 0}},
      {"groups of a block", 2, 2, 16, 32, {5, 5}, {3, 3}, {2, 2}, {0, 0}, {1, 1}, {1, 1}},
      {"groups that cut blocks", 1, 3, 5, 7, {4, 4}, {3, 3}, {2, 2}, {0, 0}, {1, 1}, {0, 0}},
      {"depthwise", 1, 19, 1, 1, {4, 6}, {4, 4}, {2, 2}, {0, 0}, {1, 1}, {1, 1}},
      {"one dimension", 2, 1, 20, 18, {11}, {4}, {3}, {0}, {1}, {0}},
      {"three dimensions",
       1,
       1,
       18,
       20,
       {3, 2, 4},
       {2, 3, 2},
       {2, 1, 2},
       {0, 0, 0},
       {0, 1, 0},
       {0, 1, 1}},
      {"no image", 0, 1, 4, 4, {2, 2}, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},
  };
}

const std::vector<Case>& Cases() {
  static const auto* const cases = [] {
    auto* const all = new std::vector<Case>(OtherCases());
    for (const Case& c : FewOutputsCases()) all->push_back(c);
    return all;
  }();
  return *cases;
}

DeconvolutionDesc DescOf(const Case& c, bool bias) {
  DeconvolutionDesc desc;
  Dims src = {c.batch, c.groups * c.ic}, dst = {c.batch, c.groups * c.oc}, weights = {c.oc, c.ic};
  if (c.groups > 1) weights.insert(weights.begin(), c.groups);
  for (size_t i = 0; i < c.in.size(); ++i) {
    src.push_back(c.in[i]);
    weights.push_back(c.kernel[i]);
    dst.push_back((c.in[i] - 1) * c.strides[i] + (c.kernel[i] - 1) * (c.dilations[i] + 1) + 1 -
                  c.left[i] - c.right[i]);
  }
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  desc.src = any(src);
  desc.weights = any(weights);
  desc.dst = any(dst);
  if (bias) desc.bias = any({dst[1]});
  desc.strides = c.strides;
  desc.dilations = c.dilations;
  desc.padding_left = c.left;
  desc.padding_right = c.right;
  return desc;
}

struct Operands {
  std::vector<float> src, weights, bias, before;
};

// Row-major, without post-ops. `magnitudes`: every product by its absolute value.
std::vector<double> Scatter(const DeconvolutionDesc& desc, const Operands& operands,
                            bool magnitudes) {
  const MemoryDesc dst = Plain(desc.dst.dims()), src = Plain(desc.src.dims());
  const int group_dims = desc.weights.rank() - desc.src.rank();
  const int64_t ic_group = desc.weights.dim(group_dims + 1),
                oc_group = desc.weights.dim(group_dims);
  const SeparableOffsets src_at(src), dst_at(dst);
  std::vector<double> result(dst.ElementCount());
  size_t w = 0;
  ForEachIndex(desc.weights.dims(), [&](const Dims& at) {
    const double weight = operands.weights[w++];
    const int64_t group = group_dims == 1 ? at[0] : 0;
    Dims positions(desc.src.dims().begin() + 2, desc.src.dims().end());
    for (int64_t n = 0; n < src.dim(0); ++n) {
      ForEachIndex(positions, [&](const Dims& position) {
        Dims from = {n, group * ic_group + at[group_dims + 1]};
        Dims to = {n, group * oc_group + at[group_dims]};
        for (size_t i = 0; i < position.size(); ++i) {
          from.push_back(position[i]);
          to.push_back(position[i] * desc.strides[i] +
                       at[group_dims + 2 + i] * (desc.dilations[i] + 1) - desc.padding_left[i]);
          if (to.back() < 0 || to.back() >= dst.dim(static_cast<int>(i) + 2)) return;
        }
        const double product = weight * operands.src[src_at.Offset(from)];
        result[dst_at.Offset(to)] += magnitudes ? std::abs(product) : product;
      });
    }
  });
  if (!desc.bias.IsZero()) {
    size_t i = 0;
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      const double bias = operands.bias[index[1]];
      result[i++] += magnitudes ? std::abs(bias) : bias;
    });
  }
  return result;
}

class DeconvolutionTest : public RowTest<DeconvolutionDesc> {
 protected:
  DeconvolutionTest() : RowTest(CreateDeconvolution) {}

  static Operands Random(const DeconvolutionDesc& desc, bool integers) {
    const auto random = [integers](const MemoryDesc& md, uint64_t seed) {
      return integers ? RandomIntegers(md.ElementCount(), seed)
                      : RandomFloats(md.ElementCount(), seed);
    };
    return {random(desc.src, 1), random(desc.weights, 2), random(desc.bias, 3),
            random(desc.dst, 4)};
  }

  std::optional<std::vector<float>> Run(const DeconvolutionDesc& desc, const Operands& operands,
                                        const Attributes& attributes = {}) {
    const auto primitive = Create(desc, attributes);
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(primitive->Desc(kArgSrc), operands.src);
    const Bytes weights = Pack(primitive->Desc(kArgWeights), operands.weights);
    Inputs inputs = {{kArgSrc, &src}, {kArgWeights, &weights}};
    Bytes bias;
    if (!desc.bias.IsZero()) {
      bias = Pack(primitive->Desc(kArgBias), operands.bias);
      inputs.push_back({kArgBias, &bias});
    }
    const MemoryDesc& dst = primitive->Desc(kArgDst);
    return Unpack<float>(dst,
                         ExecuteAllWays(*primitive, inputs, kArgDst, Pack(dst, operands.before)));
  }

  // `want` is that of any layouts: it is row-major.
  void ExpectExact(const DeconvolutionDesc& desc, const Operands& operands,
                   const std::vector<double>& want) {
    const auto result = Run(desc, operands);
    if (!result) return;
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ((*result)[i], want[i]) << "element " << i;
  }
};

TEST_P(DeconvolutionTest, IsExactOnIntegers) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    for (bool bias : {false, true}) {
      const DeconvolutionDesc desc = DescOf(c, bias);
      const Operands operands = Random(desc, /*integers=*/true);
      ExpectExact(desc, operands, Scatter(desc, operands, /*magnitudes=*/false));
    }
  }
}

TEST_P(DeconvolutionTest, EveryLayoutOfSourceAndDestination) {
  // The reference reads all layouts alike: it need not take the larger cases.
  const bool is_reference = GetParam().traits.is_reference;
  for (const Case& c : is_reference ? OtherCases() : Cases()) {
    SCOPED_TRACE(c.why);
    DeconvolutionDesc desc = DescOf(c, true);
    const Operands operands = Random(desc, /*integers=*/true);
    const std::vector<double> want = Scatter(desc, operands, /*magnitudes=*/false);
    const std::vector<Layout> sources = LayoutsOf(desc.src.dims());
    const std::vector<Layout> destinations = LayoutsOf(desc.dst.dims());
    for (size_t i = 0; i < sources.size(); ++i) {
      SCOPED_TRACE(sources[i].why);
      desc.src = sources[i].desc;
      desc.dst = destinations[i].desc;
      ExpectExact(desc, operands, want);
      if (!desc.dst.IsPlain()) continue;
      desc.src = DescOf(c, true).src;
      ExpectExact(desc, operands, want);
    }
  }
}

TEST_P(DeconvolutionTest, StaysInTheBoundOfItsSums) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    const DeconvolutionDesc desc = DescOf(c, true);
    const Operands operands = Random(desc, /*integers=*/false);
    const auto result = Run(desc, operands);
    if (!result) continue;
    const auto want = Scatter(desc, operands, false), magnitudes = Scatter(desc, operands, true);
    int64_t products = c.ic + 1;
    for (int64_t taps : c.kernel) products *= taps;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR((*result)[i], want[i], static_cast<double>(products) * 0x1p-24 * magnitudes[i]);
    }
  }
}

TEST_P(DeconvolutionTest, PostOpsFollowInTheirOrder) {
  Attributes attributes;
  ASSERT_THAT(attributes.post_ops.Append(SumPostOp{2}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{{EltwiseAlgorithm::kLinear, 1, 3}}), IsOk());
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.why);
    const DeconvolutionDesc desc = DescOf(c, true);
    const Operands operands = Random(desc, /*integers=*/true);
    const auto result = Run(desc, operands, attributes);
    if (!result) continue;
    const std::vector<double> sums = Scatter(desc, operands, false);
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ((*result)[i], std::max(sums[i] + 2 * operands.before[i], 0.0) + 3);
    }
  }
}

TEST_P(DeconvolutionTest, AnImageDoesNotDependOnTheBatch) {
  for (Case c : {Cases()[1], FewOutputsCases()[0]}) {
    SCOPED_TRACE(c.why);
    c.batch = 3;
    const DeconvolutionDesc three = DescOf(c, false);
    const Operands operands = Random(three, /*integers=*/false);
    const auto all = Run(three, operands);
    if (!all) continue;
    c.batch = 1;
    const DeconvolutionDesc one = DescOf(c, false);
    const int64_t image = one.src.ElementCount(), result = one.dst.ElementCount();
    for (int n = 0; n < 3; ++n) {
      const auto single =
          Run(one, {{operands.src.begin() + n * image, operands.src.begin() + (n + 1) * image},
                    operands.weights,
                    {},
                    std::vector<float>(result)});
      EXPECT_EQ(BitsOf(*single),
                BitsOf({all->begin() + n * result, all->begin() + (n + 1) * result}));
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Deconvolution);

TEST(DeconvolutionDispatchTest, FewOutputsAreTakenByTheirRow) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const Case& c : FewOutputsCases()) {
    SCOPED_TRACE(c.why);
    for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::BestIsa()}) {
      const auto primitive = CreateDeconvolution(DescOf(c, true), {}, {.max_isa = isa});
      ASSERT_THAT(primitive, IsOk());
      EXPECT_NE((*primitive)->name().find("few_outputs"), absl::string_view::npos);
    }
  }
}

// The reference asked a layout without strides where its elements are.
TEST(DeconvolutionErrorsTest, TransformedWeightsAreRefused) {
  DeconvolutionDesc desc = DescOf(Cases()[1], true);
  desc.weights =
      *MemoryDesc::CreateWinograd({16, 16, 3, 3}, {.tile = 4, .lanes = 16, .panel_blocks = 1});
  desc.src = Plain({1, 16, 4, 4});
  desc.dst = Plain({1, 16, 4, 4});
  desc.bias = MemoryDesc();
  desc.strides = {1, 1};
  desc.dilations = {0, 0};
  desc.padding_left = desc.padding_right = {1, 1};
  EXPECT_THAT(CreateDeconvolution(desc, {}, {}), StatusIs(kUnimplemented, "does not read"));
}

TEST(DeconvolutionErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = [](auto change) {
    DeconvolutionDesc desc = DescOf(Cases()[1], true);
    change(&desc);
    return CreateDeconvolution(desc, {}, {}).status();
  };
  EXPECT_THAT(status([](DeconvolutionDesc*) {}), IsOk());
  EXPECT_THAT(status([](DeconvolutionDesc* d) {
                d->dst = Plain({2, 16, 6, 9});
              }),
              StatusIs(kInvalid, "spatial dimension 1: dst has 9"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) {
                d->dst = Plain({2, 15, 6, 10});
              }),
              StatusIs(kInvalid, "channels"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) { d->strides[0] = 0; }),
              StatusIs(kInvalid, "stride 0"));
  EXPECT_THAT(
      status([](DeconvolutionDesc* d) { d->strides[0] = std::numeric_limits<int64_t>::min(); }),
      StatusIs(kInvalid, "stride -9223372036854775808"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) { d->dilations[1] = -1; }),
              StatusIs(kInvalid, "dilation -1"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) { d->strides = {1}; }),
              StatusIs(kInvalid, "2 values"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) {
                d->src = Plain({2, 32});
              }),
              StatusIs(kInvalid, "rank"));
  EXPECT_THAT(status([](DeconvolutionDesc* d) { d->prop_kind = PropKind::kBackward; }),
              StatusIs(kUnimplemented, "does not run backward"));
}

}  // namespace
}  // namespace tilewire::testing
