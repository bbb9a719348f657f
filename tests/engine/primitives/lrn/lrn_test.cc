// SPDX-License-Identifier: Apache-2.0
//
// Every row of LRN's table against the formula in double precision.
#include "engine/primitives/lrn/lrn.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr LrnAlgorithm kAlgorithms[] = {LrnAlgorithm::kAcrossChannels,
                                        LrnAlgorithm::kWithinChannel};

struct Parameters {
  const char* why;
  int64_t local_size;
  float alpha, beta, k;
};

constexpr Parameters kParameters[] = {
    {"AlexNet's: square roots", 5, 0.5f, 0.75f, 2},
    {"beta 1/2", 3, 0.7f, 0.5f, 1},
    {"beta 1", 3, 0.2f, 1, 1},
    {"any other beta: a power", 5, 0.3f, 0.6f, 1.5f},
    {"a negative beta", 3, 0.3f, -1.25f, 1},
    {"no neighbours", 1, 1, 0.75f, 1},
    {"an even size sums over one less", 4, 1, 0.75f, 1},
    {"reaches beyond a block of 8", 19, 1, 0.75f, 1},
};

// The sum of squares and the result of every element, row-major.
struct ExpectedElements {
  std::vector<double> values;
  int64_t summands = 1;  // at most, in one sum
};

ExpectedElements Formula(const LrnDesc& desc, const std::vector<float>& src) {
  const Dims& dims = desc.src.dims();
  const bool within = desc.algorithm == LrnAlgorithm::kWithinChannel;
  const MemoryDesc plain = Plain(dims);
  const int64_t reach = (desc.local_size - 1) / 2;
  Dims window(dims.size(), 1);
  ExpectedElements expected;
  double divisor = 1;
  for (size_t d = within ? 2 : 1; d < (within ? dims.size() : 2); ++d) {
    window[d] = 2 * reach + 1;
    expected.summands *= window[d];
    divisor *= static_cast<double>(desc.local_size);
  }
  ForEachIndex(dims, [&](const Dims& at) {
    double sum = 0;
    ForEachIndex(window, [&](Dims y) {
      for (size_t d = 0; d < dims.size(); ++d) {
        y[d] += at[d] - (window[d] > 1 ? reach : 0);
        if (y[d] < 0 || y[d] >= dims[d]) return;
      }
      sum += std::pow(static_cast<double>(src[plain.Offset(y)]), 2);
    });
    expected.values.push_back(src[plain.Offset(at)] *
                              std::pow(desc.k + desc.alpha / divisor * sum, -desc.beta));
  });
  return expected;
}

class LrnTest : public RowTest<LrnDesc> {
 protected:
  LrnTest() : RowTest(CreateLrn) {}

  // A sum of n squares is off by n + 3 roundings with its factor and k, which the power multiplies
  // by |beta|; the roots, the power and the product add six.
  void ExpectFormula(const LrnDesc& desc, const std::vector<float>& values) {
    ExpectFormula(desc, values, Formula(desc, values));
  }

  void ExpectFormula(const LrnDesc& desc, const std::vector<float>& values,
                     const ExpectedElements& expected) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " -> ", desc.dst.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Bytes src = Pack(desc.src, values);
    const std::vector<float> result = Unpack<float>(
        desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(desc.dst, 7)));
    const double roundings = 6 + std::abs(desc.beta) * (3 + static_cast<double>(expected.summands));
    for (size_t i = 0; i < result.size(); ++i) {
      const double want = expected.values[i];
      ASSERT_NEAR(result[i], want, roundings * 0x1p-24 * std::abs(want)) << "element " << i;
    }
  }
};

TEST_P(LrnTest, EveryLayout) {
  for (const Dims& dims : ImageDims()) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 1, -3, 3);
    for (LrnAlgorithm algorithm : kAlgorithms) {
      LrnDesc desc{
          PropKind::kForwardInference, algorithm, Plain(dims), Plain(dims), 3, 1, 0.75f, 1};
      const ExpectedElements expected = Formula(desc, values);
      for (const Layout& layout : LayoutsOf(dims)) {
        SCOPED_TRACE(layout.why);
        desc.src = desc.dst = layout.desc;
        ExpectFormula(desc, values, expected);
        desc.dst = Plain(dims);
        ExpectFormula(desc, values, expected);
      }
    }
  }
}

TEST_P(LrnTest, EveryParameter) {
  for (const Dims& dims : {Dims{1, 40, 5, 8}, Dims{1, 19, 23}, Dims{1, 17, 2, 3, 6}}) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 2, -3, 3);
    for (const Parameters& p : kParameters) {
      SCOPED_TRACE(p.why);
      for (LrnAlgorithm algorithm : kAlgorithms) {
        LrnDesc desc{PropKind::kForwardInference,
                     algorithm,
                     Plain(dims),
                     Plain(dims),
                     p.local_size,
                     p.alpha,
                     p.beta,
                     p.k};
        const ExpectedElements expected = Formula(desc, values);
        for (const Layout& layout : LayoutsOf(dims)) {
          desc.src = desc.dst = layout.desc;
          ExpectFormula(desc, values, expected);
        }
      }
    }
  }
}

TEST_P(LrnTest, ModelShapesWithManyPixels) {
  const Dims dims = {1, 36, 5, 41};
  const std::vector<float> values = RandomFloats(*ElementCount(dims), 3, -30, 30);
  for (LrnAlgorithm algorithm : kAlgorithms) {
    for (const char* tag : {"nchw", "nhwc", "nChw8c", "nChw16c"}) {
      const MemoryDesc md = Tagged(dims, tag);
      ExpectFormula({PropKind::kForwardInference, algorithm, md, md, 5, 1e-4f, 0.75f, 1}, values);
    }
  }
}

TEST_P(LrnTest, RankTwoAndTensorsWithoutElements) {
  LrnDesc desc{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, Plain({3, 37}),
               Plain({3, 37})};
  ExpectFormula(desc, RandomFloats(111, 4));
  for (const char* tag : {"nchw", "nChw8c", "nChw16c"}) {
    desc.src = desc.dst = Tagged({0, 37, 2, 2}, tag);
    ExpectFormula(desc, {});
  }
}

TEST_P(LrnTest, NoChannelsDoNotDivideByZero) {
  for (LrnAlgorithm algorithm : kAlgorithms) {
    for (const char* tag : {"ncw", "nwc", "nCw8c", "nCw16c"}) {
      const MemoryDesc md = Tagged({16, 0, 1}, tag);
      ExpectFormula({PropKind::kForwardInference, algorithm, md, md}, {});
    }
    const MemoryDesc md = Tagged({2, 0, 3, 3, 3}, "ndhwc");
    ExpectFormula({PropKind::kForwardInference, algorithm, md, md}, {});
  }
  ExpectFormula({PropKind::kForwardInference, kAlgorithms[0], Plain({1, 1}), Plain({1, 1})}, {2});
}

// 0^-beta is not finite, and 0 times it NaN: the padded tail must stay zero all the same.
TEST_P(LrnTest, ZeroKKeepsThePaddedTail) {
  const Dims dims = {1, 19, 3, 5};
  const std::vector<float> values = RandomFloats(*ElementCount(dims), 5, 1, 3);
  for (LrnAlgorithm algorithm : kAlgorithms) {
    for (const char* tag : {"nchw", "nChw8c", "nChw16c"}) {
      const MemoryDesc md = Tagged(dims, tag);
      for (float beta : {0.75f, 0.6f}) {
        ExpectFormula({PropKind::kForwardInference, algorithm, md, md, 5, 1, beta, 0}, values);
      }
    }
  }
}

TEST_P(LrnTest, AnyTakesTheLayoutOfSrc) {
  for (const char* tag : {"nchw", "nChw8c", "nChw16c"}) {
    const Dims dims = {1, 20, 3, 3};
    LrnDesc desc{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, Tagged(dims, tag),
                 *MemoryDesc::CreateAny(dims, DataType::kF32)};
    const auto primitive = Create(desc);
    if (primitive) {
      EXPECT_EQ(primitive->Desc(kArgDst), desc.src);
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Lrn);

TEST(LrnErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc md = Plain({1, 4, 3, 3});
  const LrnDesc good{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, md, md};
  const auto status = [&](auto change) {
    LrnDesc desc = good;
    change(&desc);
    return CreateLrn(desc, {}, {}).status();
  };
  EXPECT_THAT(status([](LrnDesc*) {}), IsOk());
  EXPECT_THAT(status([](LrnDesc* d) { d->local_size = 0; }), StatusIs(kInvalid, "local_size 0"));
  EXPECT_THAT(status([](LrnDesc* d) { d->k = std::numeric_limits<float>::infinity(); }),
              StatusIs(kInvalid, "finite"));
  EXPECT_THAT(status([](LrnDesc* d) { d->dst = Plain({1, 4, 3, 4}); }), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status([](LrnDesc* d) {
                d->src = d->dst = Plain({4, 3});
                d->algorithm = LrnAlgorithm::kWithinChannel;
              }),
              StatusIs(kInvalid, "rank 2"));
  EXPECT_THAT(status([](LrnDesc* d) { d->prop_kind = PropKind::kBackwardData; }),
              StatusIs(kInvalid, "backward_data"));
  EXPECT_THAT(status([](LrnDesc* d) {
                d->src = d->dst = Plain({1, 4}, DataType::kU8);
              }),
              StatusIs(kUnimplemented, "u8"));
}

TEST(LrnKeyTest, TellsParametersApart) {
  const MemoryDesc md = Plain({1, 4, 3, 3});
  LrnDesc desc{PropKind::kForwardInference, LrnAlgorithm::kAcrossChannels, md, md};
  std::string a, b;
  AppendKey(desc, &a);
  desc.beta = 0.5f;
  AppendKey(desc, &b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace tilewire::testing
