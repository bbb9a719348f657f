// SPDX-License-Identifier: Apache-2.0
#include "client/training/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/training/fake_trainer.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;

ExampleTensors Labels(const std::vector<int64_t>& labels) {
  return {.bytes = BytesOf(labels), .size = sizeof(int64_t)};
}

TEST(Dataset, ABatchHasTheExamplesInTheirOrder) {
  const Dataset dataset(
      {.bytes = BytesOf<float>({1, 2, 3, 4, 5, 6}), .size = 2 * sizeof(float), .dims = {2}}, {},
      {Labels({10, 20, 30}), Labels({7, 8, 9})});
  EXPECT_EQ(dataset.count(), 3);
  const Batch batch = dataset.Take({2, 0, 2});
  EXPECT_EQ(batch.count, 3);
  EXPECT_EQ(batch.input.dims, (Dims{3, 2}));
  EXPECT_EQ(batch.targets[0].dims, Dims{3});
  EXPECT_THAT(ElementsOf<float>(batch.input.View()), ElementsAre(5, 6, 1, 2, 5, 6));
  EXPECT_THAT(ElementsOf<int64_t>(batch.targets[0].View()), ElementsAre(30, 10, 30));
  ASSERT_EQ(batch.TargetViews().size(), 2);
  EXPECT_THAT(ElementsOf<int64_t>(batch.TargetViews()[1]), ElementsAre(9, 7, 9));
}

TEST(Dataset, BytesBecomeFloatsByChannel) {
  const Normalization normalization{.scale = 0.5f, .mean = {1, 2}, .std = {1, 4}};
  const std::string bytes = {0, 2, 4, static_cast<char>(255)};
  const struct {
    const char* why;
    ByteValues values;
    std::vector<float> floats;
  } kCases[] = {
      {"planes of two", {normalization, 2, 2}, {-1, 0, 0, 31.375}},
      {"pixels of two", {normalization, 2, 1}, {-1, -0.25, 1, 31.375}},
      {"one for all", {{.scale = 2, .mean = {0}, .std = {1}}, 1, 1}, {0, 4, 8, 510}},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.why);
    const Dataset dataset({.bytes = bytes, .size = 4, .dims = {2, 2}}, one.values, {Labels({0})});
    const Batch batch = dataset.Take({0});
    EXPECT_EQ(ElementsOf<float>(batch.input.View()), one.floats);
  }
}

TEST(Dataset, TheLayoutOfTheExamplesIsThatOfTheBatch) {
  const Dataset dataset(
      {.bytes = "abcdef", .size = 6, .dims = {3, 1, 2}, .layout = ::tilewire::Layout::kNhwc}, {},
      {Labels({0})});
  const Batch batch = dataset.Take({0});
  EXPECT_EQ(batch.input.View().layout, ::tilewire::Layout::kNhwc);
  EXPECT_EQ(batch.input.View().dims, (Dims{1, 3, 1, 2})) << "in logical order";
  EXPECT_EQ(batch.targets[0].View().layout, ::tilewire::Layout::kNchw);
}

}  // namespace
}  // namespace tilewire::client
