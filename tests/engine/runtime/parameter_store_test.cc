// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/parameter_store.h"

#include <cstring>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace tilewire::runtime {
namespace {

using testing::IsOk;
using testing::StatusIs;

const Dims kDims = {5, 3, 3, 3};

std::vector<float> Numbers(int64_t count) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i) + 0.5f);
  return numbers;
}

network::ConstantPtr Initial() { return network::MakeFloats("w", kDims, Numbers(135)); }

TEST(ParameterStoreTest, ElementsGoHomeAndBack) {
  for (const char* pattern : {"abcd", "ABcd16b16a", "acdb"}) {
    SCOPED_TRACE(pattern);
    ParameterStore store{CreateOptions()};
    ASSERT_OK_AND_ASSIGN(const int index, store.Add("w", kDims, Initial()));
    ASSERT_OK_AND_ASSIGN(std::vector<float> elements, store.Elements(index));
    EXPECT_EQ(elements, Numbers(135));
    EXPECT_TRUE(store.Home(index).IsZero());
    ASSERT_OK_AND_ASSIGN(const MemoryDesc home,
                         MemoryDesc::CreatePattern(kDims, DataType::kF32, pattern));
    ASSERT_THAT(store.Settle(index, home), IsOk());
    EXPECT_EQ(store.Home(index), home);
    EXPECT_EQ(store.value(index).size(), home.PaddedElementCount());
    EXPECT_EQ(store.value(index)[home.Offset({4, 2, 1, 2})], 131.5f);
    double sum = 0;
    for (float element : store.value(index)) sum += element;
    EXPECT_EQ(sum, 135 * 134 / 2 + 135 * 0.5);  // the padding is 0
    ASSERT_OK_AND_ASSIGN(elements, store.Elements(index));
    EXPECT_EQ(elements, Numbers(135));
    EXPECT_THAT(store.Settle(index, home), StatusIs(absl::StatusCode::kInternal, "'w'"));
  }
}

// Nothing is copied: plans that run next are given the other place.
TEST(ParameterStoreTest, ValuesAreExchangedByTheirPlaces) {
  ParameterStore store{CreateOptions()};
  ASSERT_OK_AND_ASSIGN(const int index, store.Add("w", kDims, Initial()));
  ASSERT_OK_AND_ASSIGN(const MemoryDesc home,
                       MemoryDesc::CreatePattern(kDims, DataType::kF32, "abcd"));
  ASSERT_THAT(store.Settle(index, home), IsOk());
  ASSERT_OK_AND_ASSIGN(AlignedBuffer other, AlignedBuffer::Allocate(home.SizeBytes()));
  std::memset(other.data(), 0, other.size());
  const std::byte* const first = store.Place(ParameterStore::ValueBuffer(index));
  const std::byte* const second = other.data();
  store.ExchangeValue(index, &other);
  EXPECT_EQ(store.Place(ParameterStore::ValueBuffer(index)), second);
  EXPECT_EQ(other.data(), first);
  ASSERT_OK_AND_ASSIGN(std::vector<float> elements, store.Elements(index));
  EXPECT_EQ(elements, std::vector<float>(135, 0));
  store.ExchangeValue(index, &other);
  ASSERT_OK_AND_ASSIGN(elements, store.Elements(index));
  EXPECT_EQ(elements, Numbers(135));
}

TEST(ParameterStoreTest, BuffersForPlans) {
  ParameterStore store{CreateOptions()};
  ASSERT_OK_AND_ASSIGN(const int first, store.Add("w", kDims, Initial()));
  ASSERT_OK_AND_ASSIGN(const int second,
                       store.Add("b", {2}, network::MakeFloats("b", {2}, {1, 2})));
  ASSERT_OK_AND_ASSIGN(const int again, store.Add("w", kDims, Initial()));
  EXPECT_EQ(first, again);
  EXPECT_EQ(store.Find("b"), second);
  EXPECT_EQ(store.Find("c"), ParameterStore::kNone);
  ASSERT_OK_AND_ASSIGN(const MemoryDesc home, MemoryDesc::CreatePattern({2}, DataType::kF32, "a"));
  ASSERT_THAT(store.Settle(second, home), IsOk());
  EXPECT_TRUE(store.gradient(second).empty());
  ASSERT_THAT(store.KeepGradient(second), IsOk());
  EXPECT_EQ(store.gradient(second).size(), 2);
  float number = 0;
  std::memcpy(&number, store.Place(ParameterStore::ValueBuffer(second)) + 4, sizeof(number));
  EXPECT_EQ(number, 2);
  number = 3;
  std::memcpy(store.Place(ParameterStore::GradientBuffer(second)), &number, sizeof(number));
  EXPECT_EQ(store.gradient(second)[0], 3);
  EXPECT_EQ(store.HeldBytes(), 16);
}

TEST(ParameterStoreTest, OtherDimsAndLayoutsAreDefects) {
  ParameterStore store{CreateOptions()};
  ASSERT_OK_AND_ASSIGN(const int index, store.Add("w", kDims, Initial()));
  EXPECT_THAT(store.Add("w", {5, 27}, Initial()),
              StatusIs(absl::StatusCode::kInternal, "parameter 'w' is [5,3,3,3]"));
  for (DataType type : {DataType::kBf16, DataType::kF32}) {
    const Dims dims = type == DataType::kF32 ? Dims{5, 27, 1, 1} : kDims;
    ASSERT_OK_AND_ASSIGN(const MemoryDesc other, MemoryDesc::CreatePattern(dims, type, "abcd"));
    EXPECT_THAT(store.Settle(index, other), StatusIs(absl::StatusCode::kInternal, "'w' in"));
  }
}

}  // namespace
}  // namespace tilewire::runtime
