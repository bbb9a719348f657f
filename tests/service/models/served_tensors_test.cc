// SPDX-License-Identifier: Apache-2.0
//
// Declared tensors: narrower than the file's, reshaped, or refused.
#include "service/models/served_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/text_format.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// An image of open size and a row; a score a class, and a tensor of any rank.
ModelSignature File() {
  return {.inputs = {{"image", DataType::kF32, {-1, 3, -1, -1}}, {"row", DataType::kS64, {-1}}},
          .outputs = {{"scores", DataType::kF32, {-1, 10}}, {"rest", DataType::kF32, {}, true}}};
}

absl::StatusOr<ServedTensors> Declare(const char* text) {
  inference::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return ServedTensors::Create(config, File());
}

TEST(ServedTensorsTest, DeclaredDimsNarrowTheFiles) {
  const struct {
    const char* text;
    Dims image;
  } cases[] = {
      {"", {-1, 3, -1, -1}},
      {"input { name: 'image' data_type: TYPE_FP32 }", {-1, 3, -1, -1}},
      {"input { name: 'image' dims: [ -1, 3, -1, -1 ] }", {-1, 3, -1, -1}},
      {"input { name: 'image' dims: [ 1, 3, 224, -1 ] }", {1, 3, 224, -1}},
      {"max_batch_size: 8 input { name: 'image' dims: [ 3, 224, 224 ] }", {-1, 3, 224, 224}},
      {"max_batch_size: 8 input { name: 'image' dims: [ 224, 224, 3 ] "
       "reshape { shape: [ 3, 224, 224 ] } }",
       {-1, 224, 224, 3}},
      {"input { name: 'none' optional: true }", {-1, 3, -1, -1}},
  };
  for (const auto& test : cases) {
    const auto served = Declare(test.text);
    ASSERT_THAT(served.status(), IsOk()) << test.text;
    EXPECT_EQ(served->signature().inputs[0].dims, test.image) << test.text;
  }
}

TEST(ServedTensorsTest, WhatTheFileDoesNotHaveIsRefused) {
  const struct {
    const char *text, *why;
  } cases[] = {
      {"input { name: 'none' }", "input 'none': the file has none of this name"},
      {"output { name: 'image' }", "output 'image': the file has none of this name"},
      {"input { name: 'row' data_type: TYPE_INT32 }",
       "its data_type is not the file's (TYPE_INT64"},
      {"input { name: 'image' dims: [ 3, 224, 224 ] }", "its dims are not the file's"},
      {"input { name: 'image' dims: [ -1, -1, 8, 8 ] }", "its dims are not the file's"},
      {"input { name: 'image' dims: [ -1, 4, 8, 8 ] }", "its dims are not the file's"},
      {"max_batch_size: 8 input { name: 'image' dims: [ -1, 3, 8, 8 ] }", "its dims are not"},
      {"max_batch_size: 8 input { name: 'image' dims: [ 7 ] reshape { shape: [ 3, 2, 1 ] } }",
       "its reshape changes the number of elements"},
      {"input { name: 'image' dims: [ 3, -1 ] reshape { shape: [ 1, 3, -1, -1 ] } }",
       "its reshape changes the number of elements"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(Declare(test.text).status(), StatusIs(absl::StatusCode::kInvalidArgument, test.why))
        << test.text;
  }
}

TEST(ServedTensorsTest, AReshapeCarriesOpenDimsOver) {
  const auto served = Declare(
      "max_batch_size: 8 "
      "input { name: 'image' dims: [ 1, 3, -1, -1 ] reshape { shape: [ 3, -1, -1 ] } } "
      "input { name: 'row' dims: [ 1 ] reshape { shape: [ ] } } "
      "output { name: 'scores' dims: [ 5, 2 ] reshape { shape: [ 10 ] } }");
  ASSERT_THAT(served.status(), IsOk());
  std::vector<InputTensor> inputs = {{.dims = {4, 1, 3, 20, 30}}, {.dims = {4, 1}}};
  ASSERT_THAT(served->ToModel(&inputs, {}), IsOk());
  EXPECT_THAT(inputs[0].dims, ElementsAre(4, 3, 20, 30));
  EXPECT_THAT(inputs[1].dims, ElementsAre(4));
  std::vector<OutputTensor> outputs(2);
  outputs[0] = {.index = 0, .dims = {4, 10}};
  outputs[1] = {.index = 1, .dims = {1, 2, 3}};
  ASSERT_THAT(served->FromModel(&outputs), IsOk());
  EXPECT_THAT(outputs[0].dims, ElementsAre(4, 5, 2));
  EXPECT_THAT(outputs[1].dims, ElementsAre(1, 2, 3)) << "nothing is said of it";
}

TEST(ServedTensorsTest, AnAnswerThatIsNotAsDeclaredIsAnError) {
  const auto served = Declare("output { name: 'scores' dims: [ 2, 10 ] }");
  ASSERT_THAT(served.status(), IsOk());
  std::vector<OutputTensor> outputs(1);
  outputs[0] = {.index = 0, .dims = {3, 10}};
  EXPECT_THAT(served->FromModel(&outputs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "output 'scores': the model computes [3,10], config.pbtxt says [2,10]"));
}

TEST(ServedTensorsTest, ReshapedTensorsAreRowMajor) {
  const auto served = Declare(
      "max_batch_size: 8 input { name: 'image' dims: [ 3, 8, 8 ] reshape { shape: [ 3, 8, 8 ] } }");
  std::vector<InputTensor> inputs = {{.dims = {1, 3, 8, 8}, .layout = Layout::kNhwc}, {}};
  EXPECT_THAT(served->ToModel(&inputs, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "input 'image': config.pbtxt reshapes"));
}

}  // namespace
}  // namespace tilewire::service
