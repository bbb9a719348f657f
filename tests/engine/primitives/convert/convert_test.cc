// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convert/convert.h"

#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "engine/memory/element_types.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr DataType kNumberTypes[] = {DataType::kU8,  DataType::kS8,  DataType::kU16,
                                     DataType::kS16, DataType::kU32, DataType::kS32,
                                     DataType::kU64, DataType::kS64, DataType::kF64};

class ConvertTest : public RowTest<ConvertDesc> {
 protected:
  ConvertTest() : RowTest(CreateConvert) {}

  // Converts a vector of From to one of To, if the row takes the pair.
  template <typename To, typename From>
  void ExpectConverted(DataType from, DataType to, const std::vector<From>& numbers,
                       const std::vector<To>& expected) {
    SCOPED_TRACE(absl::StrCat(DataTypeName(from), " to ", DataTypeName(to)));
    const Dims dims = {static_cast<int64_t>(numbers.size())};
    const ConvertDesc desc = {Plain(dims, from), Plain(dims, to)};
    const auto primitive = Create(desc);
    if (!primitive) return;
    const Bytes packed = Pack(desc.src, numbers);
    EXPECT_EQ(Unpack<To>(desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst,
                                                  Garbage(desc.dst, 7))),
              expected);
  }
  void ExpectStepByStep(const std::vector<DataType>& types, int64_t length);
  bool IsVectors() const { return absl::StrContains(GetParam().name, "vectors"); }
};

// Every pair of integer types and f64, on the ends of the source's range and around 0.
TEST_P(ConvertTest, IntegersWrapAround) {
  for (DataType from : kNumberTypes) {
    for (DataType to : kNumberTypes) {
      if (from == DataType::kF64 || to == DataType::kF64) continue;
      VisitIntegerOrDouble(from, [&](auto source) {
        using From = decltype(source);
        using Limits = std::numeric_limits<From>;
        const std::vector<From> numbers = {Limits::min(),          static_cast<From>(-1), 0, 1, 127,
                                           static_cast<From>(200), Limits::max()};
        VisitIntegerOrDouble(to, [&](auto result) {
          using To = decltype(result);
          std::vector<To> expected;
          for (From number : numbers) expected.push_back(static_cast<To>(number));
          ExpectConverted(from, to, numbers, expected);
        });
      });
    }
  }
}

TEST_P(ConvertTest, RealNumbersAreCutToIntegers) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {2.9f, -2.9f, 300, -300, kInfinity, -kInfinity, std::nanf("")};
  ExpectConverted<int8_t>(DataType::kF32, DataType::kS8, numbers, {2, -2, 127, -128, 127, -128, 0});
  ExpectConverted<uint64_t>(DataType::kF32, DataType::kU64, numbers,
                            {2, 0, 300, 0, ~uint64_t{0}, 0, 0});
  ExpectConverted<int64_t>(DataType::kF64, DataType::kS64,
                           std::vector<double>{-9007199254740993.0, 1e300, -1e300},
                           {-9007199254740992, INT64_MAX, INT64_MIN});
}

TEST_P(ConvertTest, TruthIsWhatIsNotZero) {
  ExpectConverted<uint8_t>(DataType::kS64, DataType::kBool,
                           std::vector<int64_t>{0, 1, -1, int64_t{1} << 32}, {0, 1, 1, 1});
  ExpectConverted<float>(DataType::kBool, DataType::kF32, std::vector<uint8_t>{0, 1, 255},
                         {0, 1, 1});
}

// Once, from the number itself: 1 + 2^-8 + 2^-30 is nearer to bf16's 1 + 2^-7 than to 1, though
// its nearest f32 lies half-way; so is 1 + 2^-11 + 2^-40 to f16's 1 + 2^-10.
TEST_P(ConvertTest, NarrowFloatsAreRoundedOnce) {
  if (IsVectors()) GTEST_SKIP() << "has no narrow floats";
  ExpectConverted<uint16_t>(DataType::kF64, DataType::kBf16,
                            std::vector<double>{1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-8, -2},
                            {0x3F81, 0x3F80, 0xC000});
  ExpectConverted<uint16_t>(DataType::kF64, DataType::kF16,
                            std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65536},
                            {0x3C01, 0x3C00, 0x7C00});
  ExpectConverted<double>(DataType::kF16, DataType::kF64, std::vector<uint16_t>{0x3C01},
                          {1 + 0x1p-10});
}

// Bytes of numbers of any type: random bits, ends of types, and small ones.
Bytes NumbersOf(DataType type, int64_t count) {
  Bytes bytes = Garbage(Plain({count}, type), 5);
  const auto put = [&](int64_t i, auto number) {
    std::memcpy(&bytes[i * sizeof(number)], &number, sizeof(number));
  };
  if (type == DataType::kF32) {
    const float ends[] = {0x1p31f, -0x1p31f, 0x1.fffffep30f, 0x1p63f, -0x1p63f, 0x1.fffffep62f,
                          0x1p64f, 0x1p32f,  255.9f,         256,     -0.9f,    -128.9f,
                          -129,    -0.0f,    std::nanf(""),  0};
    for (int64_t i = 0; i < count; i += 2) put(i, ends[i / 2 % 16]);
    for (int64_t i = 1; i < count; i += 4) put(i, static_cast<float>(i) * 1000.7f - 30000);
  } else if (type == DataType::kBool || type == DataType::kU8) {
    for (int64_t i = 0; i < count; i += 3) bytes[i] = 0;
  } else if (SizeOf(type) == 8 && type != DataType::kF64) {
    for (int64_t i = 0; i < count; i += 3) put(i, i % 2 == 0 ? int64_t{0} : i * 12345 - 99);
  }
  return bytes;
}

// By the row, and by the reference's conversions in turn.
void ConvertTest::ExpectStepByStep(const std::vector<DataType>& types, int64_t length) {
  std::string names;
  for (DataType type : types) absl::StrAppend(&names, DataTypeName(type), " ");
  SCOPED_TRACE(absl::StrCat(length, " by ", names));
  const ConvertDesc desc = {Plain({length}, types.front()),
                            Plain({length}, types.back()),
                            {types.begin() + 1, types.end() - 1}};
  const auto primitive = Create(desc);
  if (!primitive) return;
  const Bytes numbers = NumbersOf(types.front(), length);
  Bytes expected = numbers;
  for (size_t i = 0; i + 1 < types.size(); ++i) {
    const ConvertDesc step = {Plain({length}, types[i]), Plain({length}, types[i + 1])};
    const auto reference = CreateConvert(step, {}, {.reference_only = true});
    ASSERT_THAT(reference, IsOk());
    const Bytes src = expected;
    expected = Execute(**reference, {{kArgSrc, &src}}, kArgDst, Garbage(step.dst, 7),
                       threading::Team::Serial());
  }
  EXPECT_EQ(ExecuteAllWays(*primitive, {{kArgSrc, &numbers}}, kArgDst, Garbage(desc.dst, 7)),
            expected);
}

// Vectors and tails of every length, of every pair of types.
TEST_P(ConvertTest, EveryPairAndLengthIsTheReferences) {
  constexpr DataType kTypes[] = {DataType::kF16,  DataType::kBf16, DataType::kF32, DataType::kF64,
                                 DataType::kBool, DataType::kU8,   DataType::kS8,  DataType::kU16,
                                 DataType::kS16,  DataType::kU32,  DataType::kS32, DataType::kU64,
                                 DataType::kS64};
  for (DataType from : kTypes) {
    for (DataType to : kTypes) {
      for (int64_t length : {1, 7, 8, 15, 16, 17, 31, 100}) {
        SCOPED_TRACE(absl::StrCat(length, " from ", DataTypeName(from), " to ", DataTypeName(to)));
        const ConvertDesc desc = {Plain({length}, from), Plain({length}, to)};
        const auto primitive = Create(desc);
        if (!primitive) continue;
        const auto reference = CreateConvert(desc, {}, {.reference_only = true});
        ASSERT_THAT(reference, IsOk());
        const Bytes numbers = NumbersOf(from, length), before = Garbage(desc.dst, 7);
        EXPECT_EQ(ExecuteAllWays(*primitive, {{kArgSrc, &numbers}}, kArgDst, before),
                  Execute(**reference, {{kArgSrc, &numbers}}, kArgDst, before,
                          threading::Team::Serial()));
      }
    }
  }
}

// Chains that models have, and every one of three more types, against one step after the other.
TEST_P(ConvertTest, ChainsAreTheirSteps) {
  constexpr DataType kTypes[] = {DataType::kF32, DataType::kBool, DataType::kU8,
                                 DataType::kS8,  DataType::kU16,  DataType::kS32,
                                 DataType::kU32, DataType::kS64,  DataType::kU64};
  std::vector<std::vector<DataType>> chains = {{DataType::kF32, DataType::kS64, DataType::kU8,
                                                DataType::kS8, DataType::kBool, DataType::kF32},
                                               {DataType::kF32, DataType::kS8, DataType::kF32,
                                                DataType::kU16, DataType::kF32, DataType::kS64},
                                               {DataType::kBool, DataType::kF32, DataType::kS16,
                                                DataType::kF32, DataType::kS32, DataType::kBool}};
  for (DataType first : kTypes) {
    for (DataType second : kTypes) {
      for (DataType last : kTypes) chains.push_back({first, second, last});
    }
  }
  for (DataType from : {DataType::kF32, DataType::kS64, DataType::kBool}) {
    for (std::vector<DataType> chain : chains) {
      if (chain.size() == 3) chain.insert(chain.begin(), from);
      for (int64_t length : {1, 7, 16, 31, 600}) ExpectStepByStep(chain, length);
    }
  }
}

TEST_P(ConvertTest, NoElements) {
  const ConvertDesc desc = {Plain({0, 3}, DataType::kS64), Plain({0, 3}, DataType::kU8)};
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  const Bytes none;
  EXPECT_EQ(ExecuteAllWays(*primitive, {{kArgSrc, &none}}, kArgDst, none), none);
}

TEST_P(ConvertTest, EveryLayout) {
  for (const Dims& dims : ImageDims()) {
    for (const Layout& layout : LayoutsOf(dims)) {
      const MemoryDesc src = layout.desc.WithDataType(DataType::kS16).value();
      const auto primitive = Create({src, layout.desc});
      if (!primitive) continue;
      std::vector<int16_t> numbers(src.ElementCount());
      std::vector<float> expected;
      for (size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = static_cast<int16_t>(i * 37 - 5000);
        expected.push_back(numbers[i]);
      }
      const Bytes packed = Pack(src, numbers);
      EXPECT_EQ(Unpack<float>(layout.desc, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst,
                                                          Garbage(layout.desc, 7))),
                expected)
          << layout.why;
    }
  }
}

TILEWIRE_TEST_EVERY_ROW(Convert);

TEST(ConvertErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateConvert);
  EXPECT_THAT(status({Plain({2, 3}), Plain({3, 2}, DataType::kS64)}),
              StatusIs(kInvalid, "dst [3,2]"));
  const std::vector<DataType> many(5, DataType::kS32);
  EXPECT_THAT(status({Plain({2, 3}), Plain({2, 3}), many}),
              StatusIs(kInvalid, "5 types between; at most 4 are allowed"));
}

}  // namespace
}  // namespace tilewire::testing
