// SPDX-License-Identifier: Apache-2.0
//
// The gradient of src1, a sum over what is broadcast, and that of src0 beside it, against their
// formula in double: every way in which sums lie in memory, long sums, and numbers that are not
// finite.
#include <cmath>
#include <limits>

#include "engine/primitives/binary/binary.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr BinaryAlgorithm kOfTwoTensors[] = {
    BinaryAlgorithm::kAdd, BinaryAlgorithm::kMul, BinaryAlgorithm::kMax,  BinaryAlgorithm::kMin,
    BinaryAlgorithm::kDiv, BinaryAlgorithm::kSub, BinaryAlgorithm::kPRelu};
constexpr float kBoundless = std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

struct BothSlopes {
  double by_first, by_second;
};

BothSlopes SlopesAt(BinaryAlgorithm algorithm, double x, double y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return {1, 1};
    case BinaryAlgorithm::kSub:
      return {1, -1};
    case BinaryAlgorithm::kMul:
      return {y, x};
    case BinaryAlgorithm::kDiv:
      return {1 / y, -x / (y * y)};
    case BinaryAlgorithm::kPRelu:
      return x > 0 ? BothSlopes{1, 0} : BothSlopes{y, x};
    default:
      break;
  }
  if (x == y) return {0.5, 0.5};
  const bool is_first =
      std::isnan(x) || (!std::isnan(y) && (x > y) == (algorithm == BinaryAlgorithm::kMax));
  return is_first ? BothSlopes{1, 0} : BothSlopes{0, 1};
}

double Times(double slope, double dy) { return slope == 0 ? 0 : slope * dy; }

class BinarySumsTest : public RowTest<BinaryDesc> {
 protected:
  BinarySumsTest() : RowTest(CreateBinary) {}

  struct Elements {
    std::vector<float> x, y, dy;
  };

  static BinaryDesc DescOf(BinaryAlgorithm algorithm, const MemoryDesc& src0,
                           const MemoryDesc& src1) {
    return {algorithm, src0, src1, src0, PropKind::kBackwardData, src0, src1, src0};
  }

  static Elements Random(const BinaryDesc& desc) {
    return {RandomFloats(desc.src0.ElementCount(), 1, -2, 2),
            RandomFloats(desc.src1.ElementCount(), 2, 0.5f, 2),
            RandomFloats(desc.src0.ElementCount(), 3, -1, 1)};
  }

  // The gradients of src0 and of src1, row-major.
  static std::pair<Doubles, Doubles> Expected(const BinaryDesc& desc, const Elements& elements) {
    const BroadcastOffsets shared(Plain(desc.src1.dims()));
    std::pair<Doubles, Doubles> gradients;
    gradients.second.resize(desc.src1.ElementCount());
    size_t i = 0;
    ForEachIndex(desc.src0.dims(), [&](const Dims& at) {
      const int64_t j = shared.Offset(at);
      const auto [by_first, by_second] = SlopesAt(desc.algorithm, elements.x[i], elements.y[j]);
      gradients.first.push_back(Times(by_first, elements.dy[i]));
      gradients.second[j] += Times(by_second, elements.dy[i]);
      ++i;
    });
    return gradients;
  }

  std::optional<std::pair<std::vector<float>, std::vector<float>>> Gradients(
      const BinaryDesc& desc, const Elements& elements) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes x = Pack(desc.src0, elements.x), y = Pack(desc.src1, elements.y);
    const Bytes dy = Pack(desc.diff_dst, elements.dy);
    const Bytes other0 = Garbage(desc.diff_src0, 1), other1 = Garbage(desc.diff_src1, 1);
    Inputs inputs = {{kArgSrc, &x}, {kArgSrc1, &y}, {kArgDiffDst, &dy}, {kArgDiffSrc1, &other1}};
    const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(desc.diff_src0, 7));
    inputs.back() = {kArgDiffSrc, &other0};
    const Bytes db = ExecuteAllWays(*primitive, inputs, kArgDiffSrc1, Garbage(desc.diff_src1, 7));
    return std::pair(Unpack<float>(desc.diff_src0, dx), Unpack<float>(desc.diff_src1, db));
  }

  // Sums in double are rounded once: their order does not show.
  void ExpectFormula(const BinaryDesc& desc, const Elements& elements) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(desc.algorithm), " ", desc.src0.ToString(), " ",
                              desc.src1.ToString()));
    const auto got = Gradients(desc, elements);
    if (!got) return;
    const auto [by_first, by_second] = Expected(desc, elements);
    ExpectGradient(got->first, by_first, 2e-7);
    ExpectGradient(got->second, by_second, 2e-7);
  }

  // The same where that is not finite.
  static void ExpectNear(const std::vector<float>& got, const Doubles& want,
                         double tolerance = 2e-7) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const float one = static_cast<float>(want[i]);
      EXPECT_TRUE(got[i] == one || (std::isnan(got[i]) && std::isnan(one)) ||
                  std::abs(got[i] - one) <= tolerance * (1 + std::abs(one)))
          << "element " << i << ": " << got[i] << ", not " << one;
    }
  }
};

// Every subset of the dimensions is broadcast, in every layout: runs and columns around the sizes
// of vectors, one loop and several.
TEST_P(BinarySumsTest, EveryBroadcastOfEveryLayout) {
  for (const Dims& dims : {Dims{2, 17, 3, 5}, Dims{1, 35, 1, 9}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (unsigned kept = 0; kept < 16; ++kept) {
        Dims shared(4, 1);
        for (int d = 0; d < 4; ++d) shared[d] = (kept >> d & 1) != 0 ? dims[d] : 1;
        const MemoryDesc any = *MemoryDesc::CreateAny(shared, DataType::kF32);
        const MemoryDesc src1 = kept % 3 == 0 ? Plain(shared) : *OrLayoutOf(any, layout.desc);
        const BinaryAlgorithm algorithm = kOfTwoTensors[kept % std::size(kOfTwoTensors)];
        const BinaryDesc desc = DescOf(algorithm, layout.desc, src1);
        ExpectFormula(desc, Random(desc));
      }
    }
  }
}

// Integers, whose sums only double holds: every order gives the same bits, if none is left out.
TEST_P(BinarySumsTest, LongSumsAreExact) {
  constexpr BinaryAlgorithm kAlgorithms[] = {BinaryAlgorithm::kSub, BinaryAlgorithm::kMul,
                                             BinaryAlgorithm::kPRelu, BinaryAlgorithm::kMax};
  int number = 0;
  for (const Dims& dims : {Dims{4, 3, 60, 67}, Dims{2, 17, 40, 37}}) {
    for (const char* tag : {"nchw", "nhwc", "nChw16c"}) {
      for (const Dims& shared :
           {Dims{1, dims[1], 1, 1}, Dims{1, 1, 1, 1}, Dims{1, 1, dims[2], dims[3]}}) {
        const BinaryAlgorithm algorithm = kAlgorithms[number++ % std::size(kAlgorithms)];
        const BinaryDesc desc = DescOf(algorithm, Tagged(dims, tag), Tagged(shared, tag));
        SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", desc.src1.ToString(), " ", tag));
        Elements elements = {RandomIntegers(desc.src0.ElementCount(), 1),
                             RandomIntegers(desc.src1.ElementCount(), 2),
                             RandomIntegers(desc.src0.ElementCount(), 3)};
        for (size_t i = 0; i < elements.dy.size(); ++i)
          elements.dy[i] += i % 3 == 0 ? 0 : i % 3 == 1 ? 16000000.0f : -16000000.0f;
        const auto got = Gradients(desc, elements);
        if (!got) continue;
        const auto [by_first, by_second] = Expected(desc, elements);
        ExpectNear(got->first, by_first, 0);
        ExpectNear(got->second, by_second, 0);
      }
    }
  }
}

// A slope of 0 makes 0 of whatever gradient, and what is not finite reaches its own sum alone.
TEST_P(BinarySumsTest, NumbersThatAreNotFinite) {
  constexpr float kNumbers[] = {0, -0.0f, 1, -2, kBoundless, -kBoundless, kNoNumber, 3, -1};
  for (BinaryAlgorithm algorithm : kOfTwoTensors) {
    for (const Dims& shared : {Dims{1, 23}, Dims{37, 1}}) {
      const BinaryDesc desc = DescOf(algorithm, Plain({37, 23}), Plain(shared));
      SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", desc.src1.ToString()));
      Elements elements = Random(desc);
      for (size_t i = 0; i < elements.x.size(); i += 10) {
        elements.x[i] = kNumbers[i / 10 % 9];
        elements.dy[i] = kNumbers[i / 90 % 9];
      }
      for (size_t j = 0; j < elements.y.size(); j += 2) elements.y[j] = kNumbers[j / 2 % 9];
      const auto got = Gradients(desc, elements);
      if (!got) continue;
      const auto [by_first, by_second] = Expected(desc, elements);
      ExpectNear(got->second, by_second);
      // A quotient makes NaN of infinity by infinity.
      if (algorithm != BinaryAlgorithm::kDiv) ExpectNear(got->first, by_first);
    }
  }
}

// A block of 16 around one image, whose padding the other tensors do not have.
TEST_P(BinarySumsTest, PaddingThatOthersDoNotHave) {
  const MemoryDesc md = Tagged({1, 7, 6, 10}, "nhwc");
  const MemoryDesc padded = *MemoryDesc::CreatePattern(md.dims(), DataType::kF32, "Acdb16a");
  for (const MemoryDesc& diff_dst : {md, padded}) {
    for (BinaryAlgorithm algorithm : {BinaryAlgorithm::kSub, BinaryAlgorithm::kMul}) {
      BinaryDesc desc = DescOf(algorithm, md, Plain({1, 7, 1, 1}));
      desc.diff_dst = diff_dst;
      Elements elements = Random(desc);
      elements.x[17] = kBoundless;
      const auto got = Gradients(desc, elements);
      if (!got) continue;
      const auto [by_first, by_second] = Expected(desc, elements);
      ExpectNear(got->first, by_first);
      ExpectNear(got->second, by_second);
    }
  }
}

// Without the gradient of src0, src1 is read by quotients and maxima alone.
TEST_P(BinarySumsTest, ThoseOfTheSecondAlone) {
  for (BinaryAlgorithm algorithm : kOfTwoTensors) {
    for (const Dims& shared : {Dims{1, 23}, Dims{37, 1}}) {
      BinaryDesc desc = DescOf(algorithm, Plain({37, 23}), Plain(shared));
      desc.diff_src0 = MemoryDesc();
      SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", desc.src1.ToString()));
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const Elements elements = Random(desc);
      const Bytes x = Pack(desc.src0, elements.x), y = Pack(desc.src1, elements.y);
      const Bytes dy = Pack(desc.diff_dst, elements.dy);
      const Bytes db =
          ExecuteAllWays(*primitive, {{kArgSrc, &x}, {kArgSrc1, &y}, {kArgDiffDst, &dy}},
                         kArgDiffSrc1, Garbage(desc.diff_src1, 7));
      ExpectGradient(Unpack<float>(desc.diff_src1, db), Expected(desc, elements).second, 2e-7);
    }
  }
}

// The gradient of src0 in the memory of that of dst.
TEST_P(BinarySumsTest, MayRunInPlace) {
  for (BinaryAlgorithm algorithm : kOfTwoTensors) {
    for (const Dims& shared : {Dims{1, 20, 1}, Dims{1, 1, 1}, Dims{1, 20, 900}}) {
      for (const char* tag : {"abc", "acb"}) {
        const MemoryDesc md = *MemoryDesc::CreatePattern({2, 20, 900}, DataType::kF32, tag);
        const MemoryDesc second = *MemoryDesc::CreatePattern(shared, DataType::kF32, tag);
        const BinaryDesc desc = DescOf(algorithm, md, second);
        const auto primitive = Create(desc);
        if (!primitive || GetParam().traits.is_reference) continue;
        const Elements elements = Random(desc);
        const Bytes x = Pack(md, elements.x), y = Pack(second, elements.y);
        Bytes dy = Pack(md, elements.dy), db = Garbage(second, 1);
        ExecuteArgs args;
        args.Set(kArgSrc, x.data()).Set(kArgSrc1, y.data()).Set(kArgDiffDst, dy.data());
        args.Set(kArgDiffSrc, dy.data()).Set(kArgDiffSrc1, db.data());
        ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
        const auto [by_first, by_second] = Expected(desc, elements);
        ExpectGradient(Unpack<float>(md, dy), by_first, 2e-7);
        ExpectGradient(Unpack<float>(second, db), by_second, 2e-7);
      }
    }
  }
}

// Sizes whose product is beyond 64 bits, beside one of 0: nothing is summed, and no product of them
// is formed (the sanitizer sees it).
TEST_P(BinarySumsTest, ManyPlacesAndNoElements) {
  constexpr int64_t kMany = int64_t{1} << 40;
  const Dims many = {0, kMany, kMany, kMany}, strides = {0, 1, 1, 1};
  const MemoryDesc md = *MemoryDesc::CreateStrided(many, DataType::kF32, strides);
  for (const Dims& shared : {many, Dims{0, 1, 1, kMany}, Dims{1, 1, 1, 1}}) {
    const MemoryDesc second = *MemoryDesc::CreateStrided(shared, DataType::kF32, strides);
    const BinaryDesc desc = DescOf(BinaryAlgorithm::kMul, md, second);
    const auto got = Gradients(desc, Random(desc));
    if (!got) continue;
    EXPECT_TRUE(got->first.empty());
    EXPECT_EQ(got->second, std::vector<float>(second.ElementCount(), 0.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, BinarySumsTest,
                         ::testing::ValuesIn(RowsThatRun({PropKind::kBackwardData},
                                                         BinaryImplementations())),
                         RowName<Implementation<BinaryDesc>>);

}  // namespace
}  // namespace tilewire::testing
