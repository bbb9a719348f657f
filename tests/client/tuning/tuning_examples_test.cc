// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_examples.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::client::testing {
namespace {

using ::testing::HasSubstr;

const TensorSpec kImage = {.name = "image", .type = DataType::kF32, .dims = {-1, 1, 2, 2}};
const TensorSpec kMask = {.name = "mask", .type = DataType::kU8, .dims = {-1, 3}};

InputArray Bytes(std::vector<int64_t> shape, const std::string& bytes) {
  return {.source = "--array=a.npy", .array = {"UINT8", std::move(shape), bytes}};
}

std::vector<float> FloatsIn(const BatchTensor& tensor) {
  std::vector<float> floats(tensor.bytes.size() / sizeof(float));
  std::memcpy(floats.data(), tensor.bytes.data(), tensor.bytes.size());
  return floats;
}

TEST(TuningExamplesTest, RowsOfArraysMeetByTheirPlace) {
  std::vector<OwnedExample> examples;
  ASSERT_TRUE(
      AddArray(kImage, Bytes({2, 1, 2, 2}, std::string("\0\xff\0\0\xff\0\0\0", 8)), &examples)
          .ok());
  ASSERT_TRUE(AddArray(kMask, Bytes({2, 3}, "abcdef"), &examples).ok());
  ASSERT_EQ(examples.size(), 2u);
  ASSERT_EQ(examples[1].size(), 2u);
  EXPECT_EQ(FloatsIn(examples[0][0].tensor), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(FloatsIn(examples[1][0].tensor), (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(examples[1][1].tensor.bytes, "def");
  EXPECT_EQ(examples[1][1].name, "mask");
  const std::vector<TuningExample> views = ViewsOf(examples);
  EXPECT_EQ(views[0][0].tensor.dims, (Dims{1, 1, 2, 2}));
  EXPECT_EQ(views[1][1].tensor.pieces[0], "def");
}

TEST(TuningExamplesTest, ArraysThatDoNotFitAreRefusedByName) {
  std::vector<OwnedExample> examples;
  ASSERT_TRUE(AddArray(kMask, Bytes({2, 3}, "abcdef"), &examples).ok());
  EXPECT_THAT(std::string(AddArray(kMask, Bytes({1, 3}, "abc"), &examples).message()),
              HasSubstr("--array=a.npy has 1 example; other inputs have 2"));
  EXPECT_THAT(std::string(AddArray(kMask, Bytes({2, 1}, "ab"), &examples).message()),
              HasSubstr("--array=a.npy: examples of 1 do not fit the input"));
}

TEST(TuningExamplesTest, MadeUpOnesDifferAndDependOnTheSeed) {
  const ModelSignature signature{.inputs = {kImage}};
  const auto one = MakeUpExamples(signature, 3, 5, 1).value();
  const auto again = MakeUpExamples(signature, 3, 5, 1).value();
  const auto other = MakeUpExamples(signature, 3, 5, 7).value();
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(one[0][0].tensor.bytes, again[0][0].tensor.bytes);
  EXPECT_NE(one[0][0].tensor.bytes, one[1][0].tensor.bytes);
  EXPECT_NE(one[0][0].tensor.bytes, other[0][0].tensor.bytes);
  EXPECT_EQ(one[0][0].tensor.dims, (Dims{1, 1, 2, 2}));
}

TEST(TuningExamplesTest, LabelsAreWholeNumbersOneForEach) {
  const NpyArray bytes{.datatype = "UINT8", .shape = {3}, .bytes = std::string("\x02\x00\x09", 3)};
  EXPECT_EQ(LabelsOf("--labels=a", bytes, 3).value(), (std::vector<int64_t>{2, 0, 9}));
  const auto few = LabelsOf("--labels=a", bytes, 4);
  EXPECT_EQ(few.status().message(), "--labels=a has 3 labels for 4 examples");
  const auto real = LabelsOf("--labels=a", {"FP32", {1}, std::string(4, '\0')}, 1);
  EXPECT_EQ(real.status().message(), "--labels=a holds FP32; labels are whole numbers");
}

}  // namespace
}  // namespace tilewire::client::testing
