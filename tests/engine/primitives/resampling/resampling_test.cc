// SPDX-License-Identifier: Apache-2.0
//
// Every row of resampling's table against the formula in double precision.
#include "engine/primitives/resampling/resampling.h"

#include <cmath>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr auto kForward = PropKind::kForwardInference;
constexpr ResamplingAlgorithm kResamplingAlgorithms[] = {ResamplingAlgorithm::kNearest,
                                                         ResamplingAlgorithm::kLinear};

// The value of `src` (row-major, of these dims) at output `index` of dst's dims.
double Formula(ResamplingAlgorithm algorithm, const Dims& src_dims, const Dims& dst_dims,
               const std::vector<float>& src, const Dims& index) {
  const MemoryDesc plain = Plain(src_dims);
  const int spatial = static_cast<int>(src_dims.size()) - 2;
  const bool nearest = algorithm == ResamplingAlgorithm::kNearest;
  double sum = 0;
  ForEachIndex(Dims(spatial, nearest ? 1 : 2), [&](const Dims& side) {
    Dims at = index;
    double weight = 1;
    for (int d = 0; d < spatial; ++d) {
      const double in = src_dims[d + 2], out = dst_dims[d + 2];
      const double s = (index[d + 2] + 0.5) * in / out - 0.5;
      if (nearest) {
        at[d + 2] = static_cast<int64_t>(std::min(std::max(std::round(s), 0.0), in - 1));
        continue;
      }
      const double clamped = std::min(std::max(s, 0.0), in - 1), left = std::floor(clamped);
      at[d + 2] = static_cast<int64_t>(std::min(left + side[d], in - 1));
      weight *= side[d] == 0 ? 1 - (clamped - left) : clamped - left;
    }
    sum += weight * src[plain.Offset(at)];
  });
  return sum;
}

class ResamplingTest : public RowTest<ResamplingDesc> {
 protected:
  ResamplingTest() : RowTest(CreateResampling) {}

  // Nearest copies. Linear: up to eight terms whose weights are products of three rounded numbers.
  void ExpectFormula(const ResamplingDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString(), " ",
                              static_cast<int>(desc.algorithm)));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> values = RandomFloats(desc.src.ElementCount(), 1, -3, 3);
    const Bytes src = Pack(desc.src, values);
    const std::vector<float> result = Unpack<float>(
        desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(desc.dst, 7)));
    const double tolerance = desc.algorithm == ResamplingAlgorithm::kNearest ? 0 : 16 * 0x1p-24 * 3;
    size_t i = 0;
    ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
      const double want = Formula(desc.algorithm, desc.src.dims(), desc.dst.dims(), values, index);
      ASSERT_NEAR(result[i], want, tolerance) << "element " << i;
      ++i;
    });
  }
};

TEST_P(ResamplingTest, EveryLayout) {
  for (const Dims& dims : ImageDims()) {
    Dims larger = dims, other = dims;
    for (size_t d = 2; d < dims.size(); ++d) {
      larger[d] = 2 * dims[d];
      other[d] = 7 - static_cast<int64_t>(d);
    }
    for (ResamplingAlgorithm algorithm : kResamplingAlgorithms) {
      for (const Dims& to : {larger, other}) {
        const std::vector<Layout> sources = LayoutsOf(dims), destinations = LayoutsOf(to);
        for (size_t i = 0; i < sources.size(); ++i) {
          SCOPED_TRACE(sources[i].why);
          ExpectFormula({kForward, algorithm, sources[i].desc, destinations[i].desc});
        }
        ExpectFormula({kForward, algorithm, Plain(dims), LayoutsOf(to)[2].desc});
      }
    }
  }
}

TEST_P(ResamplingTest, FactorsUpAndDown) {
  for (ResamplingAlgorithm algorithm : kResamplingAlgorithms) {
    for (const Dims& to : {Dims{1, 19, 13, 26}, Dims{1, 19, 1, 1}, Dims{1, 19, 13, 70},
                           Dims{1, 19, 29, 5}, Dims{1, 19, 6, 13}}) {
      for (const char* tag : {"nchw", "nhwc", "nChw8c", "nChw16c"}) {
        ExpectFormula({kForward, algorithm, Tagged({1, 19, 13, 26}, tag), Tagged(to, tag)});
      }
    }
  }
}

// Too long for a table of samples.
TEST_P(ResamplingTest, LongDimensions) {
  for (ResamplingAlgorithm algorithm : kResamplingAlgorithms) {
    for (const char* tag : {"nchw", "nhwc"}) {
      ExpectFormula(
          {kForward, algorithm, Tagged({1, 2, 2, 50}, tag), Tagged({1, 2, 1, 70003}, tag)});
      ExpectFormula(
          {kForward, algorithm, Tagged({1, 2, 50, 2}, tag), Tagged({1, 2, 70003, 1}, tag)});
    }
  }
}

TEST_P(ResamplingTest, AnyAndTensorsWithoutElements) {
  const Dims larger = {1, 5, 8, 6};
  ResamplingDesc desc{kForward, ResamplingAlgorithm::kLinear, Plain({1, 5, 4, 3}),
                      *MemoryDesc::CreateAny(larger, DataType::kF32)};
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), Plain(larger));
  ExpectFormula({kForward, ResamplingAlgorithm::kLinear, Plain({0, 5, 4, 3}), Plain({0, 5, 8, 6})});
}

TILEWIRE_TEST_EVERY_ROW(Resampling);

TEST(ResamplingErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kNearest = ResamplingAlgorithm::kNearest;
  const MemoryDesc md = Plain({1, 4, 3, 3});
  const auto status = StatusOfCreating(CreateResampling);
  EXPECT_THAT(status({kForward, kNearest, md, Plain({1, 5, 3, 3})}), StatusIs(kInvalid, "N and C"));
  EXPECT_THAT(status({kForward, kNearest, Plain({1, 4}), Plain({1, 4})}),
              StatusIs(kInvalid, "rank"));
  EXPECT_THAT(status({kForward, kNearest, Plain({1, 4, 0, 3}), md}), StatusIs(kInvalid, "empty"));
  EXPECT_THAT(status({PropKind::kBackwardWeights, kNearest, md, md}),
              StatusIs(kUnimplemented, "backward_weights"));
  const MemoryDesc bytes = Plain({1, 4, 3, 3}, DataType::kU8);
  EXPECT_THAT(status({kForward, kNearest, bytes, bytes}), StatusIs(kUnimplemented, "u8"));
  EXPECT_THAT(status({kForward, kNearest, md, md}), IsOk());
}

}  // namespace
}  // namespace tilewire::testing
