// SPDX-License-Identifier: Apache-2.0
//
// The operation that RoiAlign becomes, and what is refused.
#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {
namespace {

using testing::StatusIs;

OnnxBuilder RegionsOf(int64_t opset, const std::vector<onnx::AttributeProto>& attributes,
                      int64_t coordinates = 4) {
  OnnxBuilder model(opset);
  model.Input("x", {2, 3, 8, 8}).Input("rois", {5, coordinates}).Integers("of", {0, 1, 1, 0, 0});
  model.Node("RoiAlign", {"x", "rois", "of"}, {"y"}, attributes).Output("y");
  return model;
}

TEST(RoiAlignTest, AttributesAndTheirDefaults) {
  const std::vector<Dims> dims = {{2, 3, 8, 8}, {5, 4}};
  EXPECT_THAT(BuiltText(RegionsOf(16, {}), dims), HasSubstr("y [5,3,1,1] = roi_align("));
  const std::vector<onnx::AttributeProto> all = {String("mode", "max"), Int("output_height", 7),
                                                 Int("output_width", 6), Int("sampling_ratio", 2),
                                                 Float("spatial_scale", 0.25f)};
  const std::string text = BuiltText(RegionsOf(16, all), dims);
  EXPECT_THAT(text, HasSubstr("y [5,3,7,6] = roi_align max("));
  EXPECT_THAT(text, HasSubstr(" scale=0.25 samples=2\n"));
}

TEST(RoiAlignTest, RegionsAreMovedByHalfAPixelFromOpset16On) {
  const std::vector<Dims> dims = {{2, 3, 8, 8}, {5, 4}};
  EXPECT_THAT(BuiltText(RegionsOf(10, {}), dims), HasSubstr("roi_align unaligned("));
  const auto unmoved = String("coordinate_transformation_mode", "output_half_pixel");
  EXPECT_THAT(BuiltText(RegionsOf(22, {unmoved}), dims), HasSubstr("roi_align unaligned("));
}

TEST(RoiAlignTest, Refusals) {
  const auto status = [](const OnnxBuilder& model) { return Open(model).status(); };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(status(RegionsOf(16, {String("mode", "sum")})), StatusIs(kInvalid, HasSubstr("sum")));
  EXPECT_THAT(status(RegionsOf(16, {Int("output_height", 0)})),
              StatusIs(kInvalid, HasSubstr("output_height 0")));
  EXPECT_THAT(status(RegionsOf(16, {}, 5)), StatusIs(kInvalid, HasSubstr("regions [5,5]")));
}

}  // namespace
}  // namespace tilewire::reader
