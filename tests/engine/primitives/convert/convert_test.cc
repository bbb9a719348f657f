// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convert/convert.h"

#include <cmath>
#include <limits>

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

  // Converts a vector of From to one of To.
  template <typename To, typename From>
  std::vector<To> Converted(DataType from, DataType to, const std::vector<From>& numbers) {
    const Dims dims = {static_cast<int64_t>(numbers.size())};
    const ConvertDesc desc = {Plain(dims, from), Plain(dims, to)};
    const auto primitive = Create(desc);
    if (!primitive) return {};
    const Bytes packed = Pack(desc.src, numbers);
    return Unpack<To>(
        desc.dst, ExecuteAllWays(*primitive, {{kArgSrc, &packed}}, kArgDst, Garbage(desc.dst, 7)));
  }
};

// Every pair of integer types and f64, on the ends of the source's range and around 0.
TEST_P(ConvertTest, IntegersWrapAround) {
  for (DataType from : kNumberTypes) {
    for (DataType to : kNumberTypes) {
      if (from == DataType::kF64 || to == DataType::kF64) continue;
      SCOPED_TRACE(absl::StrCat(DataTypeName(from), " to ", DataTypeName(to)));
      VisitIntegerOrDouble(from, [&](auto source) {
        using From = decltype(source);
        using Limits = std::numeric_limits<From>;
        const std::vector<From> numbers = {Limits::min(),          static_cast<From>(-1), 0, 1, 127,
                                           static_cast<From>(200), Limits::max()};
        VisitIntegerOrDouble(to, [&](auto result) {
          using To = decltype(result);
          std::vector<To> expected;
          for (From number : numbers) expected.push_back(static_cast<To>(number));
          EXPECT_EQ((Converted<To>(from, to, numbers)), expected);
        });
      });
    }
  }
}

TEST_P(ConvertTest, RealNumbersAreCutToIntegers) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> numbers = {2.9f, -2.9f, 300, -300, kInfinity, -kInfinity, std::nanf("")};
  EXPECT_EQ((Converted<int8_t>(DataType::kF32, DataType::kS8, numbers)),
            (std::vector<int8_t>{2, -2, 127, -128, 127, -128, 0}));
  EXPECT_EQ((Converted<uint64_t>(DataType::kF32, DataType::kU64, numbers)),
            (std::vector<uint64_t>{2, 0, 300, 0, ~uint64_t{0}, 0, 0}));
  EXPECT_EQ((Converted<int64_t>(DataType::kF64, DataType::kS64,
                                std::vector<double>{-9007199254740993.0, 1e300, -1e300})),
            (std::vector<int64_t>{-9007199254740992, INT64_MAX, INT64_MIN}));
}

TEST_P(ConvertTest, TruthIsWhatIsNotZero) {
  EXPECT_EQ((Converted<uint8_t>(DataType::kS64, DataType::kBool,
                                std::vector<int64_t>{0, 1, -1, int64_t{1} << 32})),
            (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ((Converted<float>(DataType::kBool, DataType::kF32, std::vector<uint8_t>{0, 1, 255})),
            (std::vector<float>{0, 1, 1}));
}

// Once, from the number itself: 1 + 2^-8 + 2^-30 is nearer to bf16's 1 + 2^-7 than to 1, though
// its nearest f32 lies half-way; so is 1 + 2^-11 + 2^-40 to f16's 1 + 2^-10.
TEST_P(ConvertTest, NarrowFloatsAreRoundedOnce) {
  EXPECT_EQ((Converted<uint16_t>(DataType::kF64, DataType::kBf16,
                                 std::vector<double>{1 + 0x1p-8 + 0x1p-30, 1 + 0x1p-8, -2})),
            (std::vector<uint16_t>{0x3F81, 0x3F80, 0xC000}));
  EXPECT_EQ((Converted<uint16_t>(DataType::kF64, DataType::kF16,
                                 std::vector<double>{1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65536})),
            (std::vector<uint16_t>{0x3C01, 0x3C00, 0x7C00}));
  EXPECT_EQ((Converted<double>(DataType::kF16, DataType::kF64, std::vector<uint16_t>{0x3C01})),
            (std::vector<double>{1 + 0x1p-10}));
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
}

}  // namespace
}  // namespace tilewire::testing
