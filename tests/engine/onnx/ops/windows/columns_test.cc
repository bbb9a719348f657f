// SPDX-License-Identifier: Apache-2.0
//
// Col2Im (engine/onnx/ops/windows/columns.cc) against torch's fold. Element i of the columns is
// sin(i).
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<network::Network> Image(const Dims& columns, const std::vector<int64_t>& image,
                                       const std::vector<int64_t>& block,
                                       const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model(18);
  model.Input("x", {columns.begin(), columns.end()});
  model.Integers("image", image).Integers("block", block);
  model.Node("Col2Im", {"x", "image", "block"}, {"y"}, attributes).Output("y");
  return Built(model, {columns});
}

void ExpectImage(const absl::StatusOr<network::Network>& network, const Elements& expected) {
  ASSERT_TRUE(network.ok()) << network.status();
  Elements columns(*ElementCount(network->values[network->inputs[0]].dims));
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = std::sin(static_cast<double>(i));
  ExpectNear(Interpret(*network, {columns})[0], expected);
}

TEST(ColumnsTest, BlocksBesideEachOther) {
  ExpectImage(Image({1, 5, 5}, {5, 5}, {1, 5}, {}),
              {0,           -0.958924, -0.544021, 0.650288, 0.912945,  0.841471,  -0.279415,
               -0.99999,    -0.287903, 0.836656,  0.909297, 0.656987,  -0.536573, -0.961397,
               -0.00885131, 0.14112,   0.989358,  0.420167, -0.750987, -0.84622,  -0.756802,
               0.412118,    0.990607,  0.149877,  -0.905578});
}

TEST(ColumnsTest, BlocksOnEachOther) {
  ExpectImage(
      Image({1, 8, 9}, {4, 5}, {2, 2},
            {Ints("dilations", {1, 2}), Ints("pads", {1, 0, 1, 0}), Ints("strides", {2, 1})}),
      {-0.750987, 0.149877, 1.86932,   0.270906,    -0.663634, 0.14112,   -0.756802, -1.4955,
       0.420167,  0.990607, 0.836656,  -0.00885131, -1.83425,  -0.404038, 0.551427,  -0.279415,
       0.656987,  1.63965,  -0.287903, -0.961397,   -0.558789, -0.999755, -0.354195, 0.920026,
       0.826829,  0.963795, 0.745113,  -0.926877,   -0.953753, -0.262375, 0.436165,  0.992873,
       0.610187,  -0.85552, -0.897928, -0.916522,   -0.831775, 0.687931,  0.986628,  0.395925});
}

TEST(ColumnsTest, NamesWhatDoesNotFit) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  using testing::StatusIs;
  EXPECT_THAT(Image({1, 5, 4}, {5, 5}, {1, 5}, {}).status(), StatusIs(kInvalid, "blocks of [1,5]"));
  EXPECT_THAT(Image({1, 4, 5}, {5, 5}, {1, 5}, {}).status(), StatusIs(kInvalid, "blocks of [1,5]"));
  EXPECT_THAT(Image({1, 6, 5}, {5, 5}, {1, 6}, {}).status(), StatusIs(kInvalid, "larger"));
  EXPECT_THAT(Image({1, 5, 5}, {5, 5}, {1, 5}, {Ints("strides", {0, 1})}).status(),
              StatusIs(kInvalid, "strides"));
  EXPECT_THAT(Image({1, 4, 4}, {1 << 20, 1 << 20}, {2, 2}, {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, "from blocks of 4 elements"));
}

}  // namespace
}  // namespace tilewire::reader
