// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/normalization/batch_normalization.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(BatchNormalizationTest, BatchNormalizationByComputedStatisticsAndByTheBatch) {
  OnnxBuilder model(15);
  model.Input("x", {2, 3, 4}).Input("m", {3}).Floats("c", {3}, {1, 2, 3});
  model.Node("BatchNormalization", {"x", "c", "c", "m", "c"}, {"a"});
  model.Node("BatchNormalization", {"x", "c", "c", "m", "c"}, {"b", "mean"},
             {Int("training_mode", 1), Float("momentum", 0.75f)});
  model.Output("a").Output("b").Output("mean");
  const std::string text = BuiltText(model, {{2, 3, 4}, {3}});
  EXPECT_THAT(text, HasSubstr("a/centred [2,3,4] = sub(x, a/channel3)\n"));
  EXPECT_THAT(text, HasSubstr("a [2,3,4] = convolution("));
  EXPECT_THAT(text, HasSubstr("b/mean [1,3,1] = reduce_mean(x)\n"));
  EXPECT_THAT(text, HasSubstr("b/running1.0 [3] = activation(m) linear(0.75,0)\n"));
  EXPECT_THAT(text, HasSubstr("b/running1.1 [3] = activation(b/running1.1/vector) linear(0.25,0)\n"
                              "mean [3] = sum(b/running1.0, b/running1.1)\n"));
}

TEST(BatchNormalizationTest, BatchNormalizationOfElements) {
  OnnxBuilder model(7);
  model.Input("x", {2, 2, 3}).Floats("c", {2, 3}, {1, 2, 3, 4, 5, 6});
  model.Node("BatchNormalization", {"x", "c", "c", "c", "c"}, {"y"}, {Int("spatial", 0)});
  const std::string text = BuiltText(model.Output("y"), {{2, 2, 3}});
  EXPECT_THAT(text, HasSubstr("y/standardized [2,2,3] = div(y/centred, y/deviation)\n"));
  EXPECT_THAT(text, HasSubstr("y [2,2,3] = add(y/scaled, y/c)\n"));
}

}  // namespace
}  // namespace tilewire::reader
