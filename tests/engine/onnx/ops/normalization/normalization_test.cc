// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/normalization/normalization.cc become, and
// what they refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(NormalizationTest, SeveralOperands) {
  ExpectBuiltFrom({
      {"layer normalization",
       "LayerNormalization",
       {"x", "row", "row"},
       {},
       {2, 3, 4},
       "y/matrix [6,4] = reshape(x)\n"
       "y/rows [6,4] = layer_normalization(y/matrix) epsilon=1e-05 scaled\n"
       "y [2,3,4] = reshape(y/rows)\n"},
      {"layer normalization of two dimensions",
       "LayerNormalization",
       {"x", "rows"},
       {Int("axis", 1), Float("epsilon", 0.5f)},
       {2, 3, 4},
       "y/matrix [2,12] = reshape(x)\n"
       "y/rows [2,12] = layer_normalization(y/matrix) epsilon=0.5 scaled\n"
       "y [2,3,4] = reshape(y/rows)\n"},
  });
}

TEST(NormalizationTest, OptionalOutputs) {
  OnnxBuilder model(17);
  model.Input("x", {2, 4}).Floats("scale", {4});
  model.Node("Dropout", {"x"}, {"kept", "mask"});
  model.Node("LayerNormalization", {"kept", "scale"}, {"y", "mean", "inverse"});
  model.Output("mask").Output("y").Output("mean").Output("inverse");
  const std::string text = BuiltText(model, {{2, 4}});
  EXPECT_THAT(text, HasSubstr("mask [2,4] = select(kept/kept) 0:0 by 0 x2 1:0 by 0 x4\n"));
  EXPECT_THAT(text, HasSubstr("mean [2,1] = reduce_mean(x)\n"));
  EXPECT_THAT(text, HasSubstr("inverse [2,1] = reciprocal(y/deviation)\n"));
}

TEST(NormalizationTest, RowsOfOtherTypesAreNoLayerNormalization) {
  for (const auto type : {onnx::TensorProto::DOUBLE, onnx::TensorProto::UINT16}) {
    OnnxBuilder model(17);
    model.Input("x", {2, 4}, type).Floats("scale", {4});
    model.Node("LayerNormalization", {"x", "scale"}, {"y"}).Output("y", type);
    const std::string text = BuiltText(model, {{2, 4}});
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("layer_normalization"), HasSubstr("INTERNAL")))) << text;
  }
}

TEST(NormalizationTest, Refusals) {
  ExpectInvalid({
      {"a scale of another size", "LayerNormalization", {"m", "two"}, {}, "do not fit", 17},
  });
}

}  // namespace
}  // namespace tilewire::reader
