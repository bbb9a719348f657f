// SPDX-License-Identifier: Apache-2.0
//
// Every row of binary's table against the formula: one rounding, hence the same bits.
#include "engine/primitives/binary/binary.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr BinaryAlgorithm kBinaryAlgorithms[] = {
    BinaryAlgorithm::kAdd, BinaryAlgorithm::kMul, BinaryAlgorithm::kMax,  BinaryAlgorithm::kMin,
    BinaryAlgorithm::kDiv, BinaryAlgorithm::kSub, BinaryAlgorithm::kPRelu};

float Formula(BinaryAlgorithm algorithm, float x, float y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return x + y;
    case BinaryAlgorithm::kMul:
      return x * y;
    case BinaryAlgorithm::kMax:
      return std::isnan(x) || std::isnan(y) ? x + y : std::max(x, y);
    case BinaryAlgorithm::kMin:
      return std::isnan(x) || std::isnan(y) ? x + y : std::min(x, y);
    case BinaryAlgorithm::kDiv:
      return x / y;
    case BinaryAlgorithm::kSub:
      return x - y;
    default:  // kPRelu
      return x < 0 ? x * y : x;
  }
}

// NaN equals NaN, whichever bits.
void ExpectSame(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
        << "element " << i << ": " << got[i] << ", not " << want[i];
  }
}

class BinaryTest : public RowTest<BinaryDesc> {
 protected:
  BinaryTest() : RowTest(CreateBinary) {}

  std::optional<std::vector<float>> Apply(const BinaryDesc& desc, const std::vector<float>& src0,
                                          const std::vector<float>& src1,
                                          const Attributes& attributes = {},
                                          const Bytes& before = {}) {
    const auto primitive = Create(desc, attributes);
    if (!primitive) return std::nullopt;
    const Bytes x = Pack(desc.src0, src0), y = Pack(desc.src1, src1);
    return Unpack<float>(desc.dst,
                         ExecuteAllWays(*primitive, {{kArgSrc, &x}, {kArgSrc1, &y}}, kArgDst,
                                        before.empty() ? Garbage(desc.dst, 3) : before));
  }

  void ExpectFormula(const BinaryDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src0.ToString(), " ", desc.src1.ToString(), " -> ",
                              desc.dst.ToString(), " ", static_cast<int>(desc.algorithm)));
    const std::vector<float> src0 = RandomFloats(desc.src0.ElementCount(), 1, -3, 3);
    const std::vector<float> src1 = RandomFloats(desc.src1.ElementCount(), 2, -3, 3);
    const auto result = Apply(desc, src0, src1);
    if (!result) return;
    const MemoryDesc other = Plain(desc.src1.dims());
    std::vector<float> want;
    ForEachIndex(desc.dst.dims(), [&](Dims index) {
      const float x = src0[want.size()];
      for (int d = 0; d < other.rank(); ++d) index[d] = other.dim(d) == 1 ? 0 : index[d];
      want.push_back(Formula(desc.algorithm, x, src1[other.Offset(index)]));
    });
    ExpectSame(*result, want);
  }
};

// The layout of `like` for `dims`, of the same rank.
MemoryDesc InLayoutOf(const Layout& like, const Dims& dims) {
  for (const Layout& layout : LayoutsOf(dims)) {
    if (absl::string_view(layout.why) == like.why) return layout.desc;
  }
  return Plain(dims);
}

TEST_P(BinaryTest, EveryLayoutAndBroadcast) {
  for (const Dims& dims : ImageDims()) {
    Dims ones(dims.size(), 1), channel = ones, image_channel = ones, pixel = dims, row = dims;
    channel[1] = image_channel[1] = dims[1];
    image_channel[0] = dims[0];
    pixel[1] = 1;
    row.back() = 1;
    for (const Dims& other : {dims, ones, channel, image_channel, pixel, row}) {
      for (const Layout& layout : LayoutsOf(dims)) {
        SCOPED_TRACE(layout.why);
        BinaryDesc desc{BinaryAlgorithm::kSub, layout.desc, InLayoutOf(layout, other), layout.desc};
        ExpectFormula(desc);
        desc.src1 = Plain(other);
        ExpectFormula(desc);
        desc.dst = Plain(dims);
        ExpectFormula(desc);
      }
    }
  }
}

TEST_P(BinaryTest, EveryAlgorithmWithTailsAndManyRows) {
  for (BinaryAlgorithm algorithm : kBinaryAlgorithms) {
    for (const char* tag : {"nchw", "nhwc", "nChw8c", "nChw16c"}) {
      for (const Dims& dims : {Dims{2, 37, 5, 9}, Dims{1, 100, 3, 3}}) {
        for (const Dims& other : {dims, Dims{1, dims[1], 1, 1}, Dims{1, 1, 1, 1}}) {
          ExpectFormula({algorithm, Tagged(dims, tag), Tagged(other, tag), Tagged(dims, tag)});
        }
      }
    }
    const MemoryDesc line = Plain({70001});
    ExpectFormula({algorithm, line, line, line});
    ExpectFormula({algorithm, line, Plain({1}), line});
  }
}

TEST_P(BinaryTest, SpecialValues) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> values = {
      0.0f, -0.0f, 1, -2, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 1e30f};
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<float> x, y;
  for (float a : values) {
    for (float b : values) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  for (BinaryAlgorithm algorithm : kBinaryAlgorithms) {
    std::vector<float> want;
    for (size_t i = 0; i < x.size(); ++i) want.push_back(Formula(algorithm, x[i], y[i]));
    const MemoryDesc md = Plain({n * n});
    const auto result = Apply({algorithm, md, md, md}, x, y);
    ASSERT_TRUE(result);
    ExpectSame(*result, want);
  }
}

// Integers: every order of operations is exact.
TEST_P(BinaryTest, PostOpsFollowInTheirOrder) {
  Attributes attributes;
  ASSERT_THAT(attributes.post_ops.Append(SumPostOp{2}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{{EltwiseAlgorithm::kRelu}, 3}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{{EltwiseAlgorithm::kLinear, 1, 5}}), IsOk());
  for (const char* tag : {"nchw", "nhwc", "nChw8c", "nChw16c"}) {
    const Dims dims = {2, 19, 3, 5};
    for (const Dims& other : {dims, Dims{1, 19, 1, 1}, Dims{2, 1, 3, 5}}) {
      const BinaryDesc desc{BinaryAlgorithm::kMul, Tagged(dims, tag), Tagged(other, tag),
                            Tagged(dims, tag)};
      const auto x = RandomIntegers(desc.src0.ElementCount(), 1);
      const auto y = RandomIntegers(desc.src1.ElementCount(), 2);
      const auto before = RandomIntegers(desc.dst.ElementCount(), 3);
      const auto plain = Apply(desc, x, y);
      const auto result = Apply(desc, x, y, attributes, Pack(desc.dst, before));
      ASSERT_EQ(plain.has_value(), result.has_value());
      if (!result) continue;
      std::vector<float> want;
      for (size_t i = 0; i < before.size(); ++i) {
        want.push_back(3 * std::max((*plain)[i] + 2 * before[i], 0.0f) + 5);
      }
      ExpectSame(*result, want);
    }
  }
}

TEST_P(BinaryTest, MayRunInPlace) {
  for (const char* tag : {"nchw", "nChw8c", "nChw16c"}) {
    const MemoryDesc md = Tagged({2, 19, 3, 5}, tag);
    const auto x = RandomFloats(md.ElementCount(), 1);
    const auto y = RandomFloats(md.ElementCount(), 2);
    const auto primitive = Create({BinaryAlgorithm::kSub, md, md, md});
    if (!primitive) continue;
    for (bool first : {true, false}) {
      Bytes left = Pack(md, x), right = Pack(md, y);
      Bytes& both = first ? left : right;
      ExecuteArgs args;
      args.Set(kArgSrc, left.data()).Set(kArgSrc1, right.data()).Set(kArgDst, both.data());
      ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
      const auto result = Unpack<float>(md, both);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(result[i], x[i] - y[i]);
    }
  }
}

TEST_P(BinaryTest, AnyAndTensorsWithoutElements) {
  const MemoryDesc md = Plain({2, 3});
  const auto primitive =
      Create({BinaryAlgorithm::kAdd, md, md, *MemoryDesc::CreateAny({2, 3}, DataType::kF32)});
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), md);
  const MemoryDesc empty = Plain({0, 3});
  ExpectFormula({BinaryAlgorithm::kAdd, empty, empty, empty});
  ExpectFormula({BinaryAlgorithm::kAdd, empty, Plain({1, 3}), empty});
  // The product of the other sizes is beyond 64 bits: the sanitizer sees where it is formed.
  constexpr int64_t kMany = int64_t{1} << 40;
  const MemoryDesc many =
      *MemoryDesc::CreateStrided({0, kMany, kMany, kMany, kMany}, DataType::kF32, {1, 2, 2, 2, 2});
  ExpectFormula({BinaryAlgorithm::kAdd, many, Plain({1, 1, 1, 1, 1}), many});
}

TILEWIRE_TEST_EVERY_ROW(Binary);

TEST(BinaryErrorsTest, CreationNamesWhatDoesNotFit) {
  const MemoryDesc md = Plain({2, 3});
  const auto status = StatusOfCreating(CreateBinary);
  constexpr auto kAdd = BinaryAlgorithm::kAdd;
  EXPECT_THAT(status({kAdd, md, md, Plain({2, 4})}), StatusIs(kInvalid, "dst [2,4]"));
  EXPECT_THAT(status({kAdd, md, Plain({2, 2}), md}), StatusIs(kInvalid, "broadcast"));
  EXPECT_THAT(status({kAdd, md, Plain({3}), md}), StatusIs(kInvalid, "broadcast"));
  EXPECT_THAT(status({kAdd, Plain({1, 3}), md, Plain({1, 3})}), StatusIs(kInvalid, "broadcast"));
  EXPECT_THAT(status({BinaryAlgorithm::kPower, md, md, md}), StatusIs(kInvalid, "no algorithm"));
  EXPECT_THAT(status({kAdd, md, MemoryDesc(), md}), StatusIs(kInvalid, "src1"));
  const MemoryDesc half = Plain({2, 3}, DataType::kBf16);
  EXPECT_THAT(status({kAdd, half, half, half}), StatusIs(kUnimplemented, "bf16"));
}

}  // namespace
}  // namespace tilewire::testing
