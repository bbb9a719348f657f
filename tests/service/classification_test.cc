// SPDX-License-Identifier: Apache-2.0
#include "service/wire/classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/service/served_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;

template <typename T>
OutputTensor Output(const Dims& dims, const std::vector<T>& values) {
  OutputTensor output;
  output.dims = dims;
  output.bytes = AlignedBuffer::Allocate(values.size() * sizeof(T)).value();
  if (!values.empty()) {
    std::memcpy(output.bytes.data(), values.data(), values.size() * sizeof(T));
  }
  return output;
}

absl::StatusOr<Classes> Classified(const OutputTensor& output, const TensorSpec& spec, int64_t most,
                                   absl::Span<const absl::string_view> labels = {}) {
  return Classify(output, spec, most, labels, [](int64_t) { return absl::OkStatus(); });
}
// The signature leaves the first of several dimensions open.
absl::StatusOr<Classes> Classified(const OutputTensor& output, DataType type, int64_t most,
                                   absl::Span<const absl::string_view> labels) {
  Dims declared = output.dims;
  if (declared.size() > 1) declared[0] = -1;
  return Classified(output, TensorSpec{"x", type, declared}, most, labels);
}

TEST(ClassificationTest, TellsTheLargestOfEachRowWithIndexAndLabel) {
  const OutputTensor output = Output<float>({2, 3}, {0.25f, 4, -1, 1e-7f, 0.1f, 16777216});
  const std::vector<absl::string_view> labels = {"cat", "", "a:b"};
  ASSERT_OK_AND_ASSIGN(const Classes classes, Classified(output, DataType::kF32, 2, labels));
  EXPECT_THAT(classes.shape, ElementsAre(2, 2));
  EXPECT_THAT(ElementsOfBytes(classes.bytes),
              ElementsAre("4:1", "0.25:0:cat", "16777216:2:a:b", "0.1:1"));
}

TEST(ClassificationTest, OneDimensionIsOneRow) {
  const std::vector<absl::string_view> labels = {"cat", "dog", "cow"};
  const OutputTensor output = Output<float>({3}, {0.25f, -1, 4});
  ASSERT_OK_AND_ASSIGN(const Classes two, Classified(output, DataType::kF32, 2, labels));
  EXPECT_THAT(two.shape, ElementsAre(2));
  EXPECT_THAT(ElementsOfBytes(two.bytes), ElementsAre("4:2:cow", "0.25:0:cat"));
  ASSERT_OK_AND_ASSIGN(const Classes all, Classified(output, DataType::kF32, 9, labels));
  EXPECT_THAT(all.shape, ElementsAre(3));
  EXPECT_THAT(ElementsOfBytes(all.bytes), ElementsAre("4:2:cow", "0.25:0:cat", "-1:1:dog"));
  ASSERT_OK_AND_ASSIGN(const Classes none,
                       Classified(Output<float>({0}, {}), DataType::kF32, 3, labels));
  EXPECT_THAT(none.shape, ElementsAre(0));
  EXPECT_EQ(none.bytes, "");
}

TEST(ClassificationTest, OnesAreNoRowsUnlessTheyAreABatch) {
  const struct {
    Dims declared, dims, shape;
    const char* why;
  } cases[] = {
      {{1, 4}, {1, 4}, {2}, "a row that is closed"},
      {{4, 1, 1}, {4, 1, 1}, {2}, "classes before ones"},
      {{4, 1}, {4, 1}, {2}, "classes before a one"},
      {{1, 4, 1, 1}, {1, 4, 1, 1}, {2}, "classes between ones"},
      {{1, 1, 4}, {1, 1, 4}, {2}, "classes after ones"},
      {{-1}, {4}, {2}, "one dimension is not a batch"},
      {{1, -1}, {1, 4}, {2}, "open classes"},
      {{-1, 4}, {1, 4}, {1, 2}, "a batch of one"},
      {{-1, 4, 1, 1}, {1, 4, 1, 1}, {1, 2}, "a batch of one before ones"},
      {{-1, 1, 4}, {1, 1, 4}, {1, 2}, "a batch of one, classes after a one"},
      {{-1, 1}, {4, 1}, {4, 1}, "a batch of rows of one class"},
      {{-1, 2}, {2, 2}, {2, 2}, "a batch"},
      {{2, 2}, {2, 2}, {2, 2}, "a batch that is closed"},
      {{1, 1}, {1, 1}, {1}, "one class"},
  };
  for (const auto& [declared, dims, shape, why] : cases) {
    const TensorSpec spec = {"x", DataType::kF32, declared};
    EXPECT_THAT(CheckClassified(spec), IsOk()) << why;
    const auto classes = Classified(Output<float>(dims, {4, 3, 2, 1}), spec, /*most=*/2);
    ASSERT_THAT(classes, IsOk()) << why;
    EXPECT_EQ(classes->shape, shape) << why;
    EXPECT_EQ(ElementsOfBytes(classes->bytes)[0], "4:0") << why;
  }
  TensorSpec open = {"x", DataType::kF32, {}};
  open.any_rank = true;
  ASSERT_OK_AND_ASSIGN(const Classes row, Classified(Output<float>({1, 2}, {1, 2}), open, 2));
  EXPECT_THAT(row.shape, ElementsAre(1, 2)) << "of an open rank, the first of several is a batch";
}

TEST(ClassificationTest, EqualValuesStandInTheOrderOfTheirIndicesAndNoNumbersLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const OutputTensor output = Output<float>({1, 7}, {nan, 1, 0.0f, 1, -0.0f, inf, nan});
  ASSERT_OK_AND_ASSIGN(const Classes classes, Classified(output, DataType::kF32, 7, {}));
  EXPECT_THAT(ElementsOfBytes(classes.bytes),
              ElementsAre("inf:5", "1:1", "1:3", "0:2", "-0:4", "nan:0", "nan:6"));
}

TEST(ClassificationTest, MoreThanThereAreIsAll) {
  ASSERT_OK_AND_ASSIGN(const Classes classes,
                       Classified(Output<float>({2, 1}, {1, 2}), DataType::kF32,
                                  std::numeric_limits<int64_t>::max(), {}));
  EXPECT_THAT(classes.shape, ElementsAre(2, 1));
  EXPECT_THAT(ElementsOfBytes(classes.bytes), ElementsAre("1:0", "2:0"));
  ASSERT_OK_AND_ASSIGN(const Classes none,
                       Classified(Output<float>({0, 5}, {}), DataType::kF32, 3, {}));
  EXPECT_THAT(none.shape, ElementsAre(0, 3));
  EXPECT_EQ(none.bytes, "");
}

TEST(ClassificationTest, ReadsEveryType) {
  const Dims pair = {1, 2};
  const auto first = [&pair](DataType type, const auto& values) {
    const auto classes = Classified(Output(pair, values), type, 1, {});
    return classes.ok() ? ElementsOfBytes(classes->bytes).at(0)
                        : std::string(classes.status().message());
  };
  using std::vector;
  EXPECT_EQ(first(DataType::kF64, vector<double>{0.1, 1e300}), "1e+300:1");
  EXPECT_EQ(first(DataType::kF16, vector<uint16_t>{0x3C00, 0xC000}), "1:0");
  EXPECT_EQ(first(DataType::kF16, vector<uint16_t>{0x0001, 0x8001}), "5.9604645e-08:0");
  EXPECT_EQ(first(DataType::kF16, vector<uint16_t>{0x7C00, 0x7BFF}), "inf:0");
  EXPECT_EQ(first(DataType::kBf16, vector<uint16_t>{0x3FC0, 0x4000}), "2:1");
  EXPECT_EQ(first(DataType::kS8, vector<int8_t>{-128, -1}), "-1:1");
  EXPECT_EQ(first(DataType::kU8, vector<uint8_t>{200, 3}), "200:0");
  EXPECT_EQ(first(DataType::kS16, vector<int16_t>{-5, 7}), "7:1");
  EXPECT_EQ(first(DataType::kU16, vector<uint16_t>{65535, 0}), "65535:0");
  EXPECT_EQ(first(DataType::kS32, vector<int32_t>{-5, -7}), "-5:0");
  EXPECT_EQ(first(DataType::kU32, vector<uint32_t>{4294967295u, 0}), "4294967295:0");
  EXPECT_EQ(first(DataType::kS64, vector<int64_t>{9007199254740993, 9007199254740992}),
            "9007199254740993:0");
  EXPECT_EQ(first(DataType::kU64, vector<uint64_t>{1, 18446744073709551615u}),
            "18446744073709551615:1");
  EXPECT_EQ(first(DataType::kBool, vector<uint8_t>{0, 7}), "1:1");
}

TEST(ClassificationTest, TakesRowsOfClassesOnly) {
  EXPECT_THAT(CheckClassified({"x", DataType::kF32, {-1, 1000}}), IsOk());
  EXPECT_THAT(CheckClassified({"x", DataType::kF32, {1000}}), IsOk());
  EXPECT_THAT(CheckClassified({"x", DataType::kF32, {-1, 1000, 1, 1}}), IsOk());
  EXPECT_THAT(CheckClassified({"x", DataType::kF32, {-1, 1000, -1, -1}}), IsOk());
  for (const Dims& dims :
       {Dims{}, Dims{-1, 3, 2}, Dims{-1, 3, 1, 2}, Dims{3, 1, 2}, Dims{1, 3, 2}, Dims{2, 3, 4}}) {
    EXPECT_THAT(CheckClassified({"x", DataType::kF32, dims}),
                StatusIs(absl::StatusCode::kInvalidArgument, "classification"));
  }
  EXPECT_THAT(Classified(Output<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}), DataType::kF32, 1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "[1,2,3]"));
}

TEST(ClassificationTest, WhatItsTextTakesIsChargedBeforeItIsHeld) {
  constexpr int64_t kRows = 4000, kPiece = 64 << 10;
  const OutputTensor output = Output<float>({kRows, 1}, std::vector<float>(kRows, 0.1f));
  const std::string label(50, 'x');
  const std::vector<absl::string_view> labels = {label};
  int64_t charged = 0, most = 1 << 30;
  const auto charge = [&](int64_t bytes) {
    charged += bytes;
    return charged <= most ? absl::OkStatus() : absl::UnavailableError("no room");
  };
  const TensorSpec spec = {"x", DataType::kF32, {-1, 1}};
  ASSERT_OK_AND_ASSIGN(const Classes all, Classify(output, spec, 1, labels, charge));
  EXPECT_GE(charged, static_cast<int64_t>(all.bytes.size()));
  EXPECT_LE(charged, static_cast<int64_t>(all.bytes.size()) + kPiece);
  charged = 0;
  most = kPiece;
  EXPECT_THAT(Classify(output, spec, 1, labels, charge),
              StatusIs(absl::StatusCode::kUnavailable, "no room"));
}

}  // namespace
}  // namespace tilewire::service
