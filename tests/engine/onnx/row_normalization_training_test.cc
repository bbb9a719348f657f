// SPDX-License-Identifier: Apache-2.0
//
// Layer normalization in networks for training: one operation whose scale and shift are sources,
// in every form in which files have it, with the same answers as the network for inference.
#include <cmath>

#include "tests/engine/onnx/fixture.h"
#include "tests/support/random_tensor.h"

namespace tilewire::reader {
namespace {

using Shape = std::vector<int64_t>;

std::string RowsText(const OnnxBuilder& builder, const Shape& shape,
                     const TrainingPurpose& purpose = {}) {
  const auto model = Open(builder);
  if (!model.ok()) return model.status().ToString();
  const auto network = (*model)->SpecializeForTraining({Dims(shape.begin(), shape.end())}, purpose);
  return network.ok() ? NetworkToText(*network) : network.status().ToString();
}

// A node over the dimensions from `axis` on, of x.
OnnxBuilder NodeOfRows(const Shape& x, const Shape& row, int64_t axis, bool has_shift = true) {
  OnnxBuilder model(17);
  model.Input("x", x).Floats("g", row);
  std::vector<std::string> inputs = {"x", "g"};
  if (has_shift) {
    model.Floats("b", row);
    inputs.push_back("b");
  }
  model.Node("LayerNormalization", inputs, {"y"}, {Int("axis", axis), Float("epsilon", 0.25f)});
  return std::move(model.Output("y"));
}

TEST(RowNormalizationTrainingTest, ANodeIsOneOperation) {
  EXPECT_EQ(RowsText(NodeOfRows({2, 4}, {4}, -1), {2, 4}),
            "input x [2,4]\nparameter g [4]\nparameter b [4]\n"
            "y [2,4] = layer_normalization(x, g, b) epsilon=0.25\noutput y\n");
  EXPECT_EQ(RowsText(NodeOfRows({2, 3, 4}, {4}, 2), {2, 3, 4}),
            "input x [2,3,4]\nparameter g [4]\nparameter b [4]\n"
            "y/matrix [6,4] = reshape(x)\n"
            "y/rows [6,4] = layer_normalization(y/matrix, g, b) epsilon=0.25\n"
            "y [2,3,4] = reshape(y/rows)\noutput y\n");
}

TEST(RowNormalizationTrainingTest, RowsOfSeveralDimensions) {
  EXPECT_THAT(RowsText(NodeOfRows({2, 3, 4}, {3, 4}, -2), {2, 3, 4}),
              HasSubstr("y/scale [12] = reshape(g)\ny/shift [12] = reshape(b)\n"
                        "y/rows [2,12] = layer_normalization(y/matrix, y/scale, y/shift)"));
  EXPECT_THAT(RowsText(NodeOfRows({5}, {5}, 0), {5}),
              HasSubstr("y/rows [1,5] = layer_normalization(y/matrix, g, b)"));
}

TEST(RowNormalizationTrainingTest, AShiftThatIsNotThereIsZero) {
  EXPECT_THAT(RowsText(NodeOfRows({2, 4}, {4}, -1, /*has_shift=*/false), {2, 4}),
              HasSubstr("y/y/shift [4] = literal() elements=4\n"
                        "y [2,4] = layer_normalization(x, g, y/y/shift) epsilon=0.25\n"));
}

TEST(RowNormalizationTrainingTest, WhatIsFrozenIsALiteralAndNumbersIfAllIs) {
  const OnnxBuilder model = NodeOfRows({2, 4}, {4}, -1);
  EXPECT_THAT(RowsText(model, {2, 4}, {.frozen = {"g"}}),
              HasSubstr("y/g [4] = literal() elements=4\n"
                        "y [2,4] = layer_normalization(x, y/g, b) epsilon=0.25\n"));
  EXPECT_THAT(RowsText(model, {2, 4}, {.frozen = {"b"}}),
              HasSubstr("y [2,4] = layer_normalization(x, g, y/b) epsilon=0.25\n"));
  EXPECT_THAT(RowsText(model, {2, 4}, {.frozen = {"g", "b"}}),
              HasSubstr("y [2,4] = layer_normalization(x) epsilon=0.25 scaled\n"));
}

TEST(RowNormalizationTrainingTest, StatisticsThatTheModelGivesAreSteps) {
  OnnxBuilder model(17);
  model.Input("x", {2, 4}).Floats("g", {4}).Floats("b", {4});
  model.Node("LayerNormalization", {"x", "g", "b"}, {"y", "mean"}).Output("y").Output("mean");
  const std::string text = RowsText(model, {2, 4});
  EXPECT_THAT(text, HasSubstr("mean [2,1] = reduce_mean(x)\n"));
  EXPECT_THAT(text, Not(HasSubstr("layer_normalization")));
}

// As exporters write it before opset 17, with a scale and a shift of `row`.
OnnxBuilder Spelled(const Shape& x, const Shape& row) {
  OnnxBuilder model;
  model.Input("x", x).Floats("g", row).Floats("b", row);
  model.Floats("two", {}, {2}).Floats("epsilon", {}, {0.25f});
  model.Node("ReduceMean", {"x"}, {"m"}, {Ints("axes", {-1})}).Node("Sub", {"x", "m"}, {"c"});
  model.Node("Pow", {"c", "two"}, {"s"}).Node("ReduceMean", {"s"}, {"v"}, {Ints("axes", {-1})});
  model.Node("Add", {"v", "epsilon"}, {"a"}).Node("Sqrt", {"a"}, {"d"});
  return std::move(model.Node("Div", {"c", "d"}, {"n"}));
}

OnnxBuilder SpelledWhole(const Shape& x, const Shape& row) {
  OnnxBuilder model = Spelled(x, row);
  model.Node("Mul", {"n", "g"}, {"p"}).Node("Add", {"p", "b"}, {"y"});
  return std::move(model.Output("y"));
}

TEST(RowNormalizationTrainingTest, TheExportedFormIsOneOperation) {
  for (const Shape& x : {Shape{2, 4}, {2, 3, 4}, {2, 3, 2, 4}, {2, 1, 3, 2, 4}}) {
    const std::string dims = DimsToString(Dims(x.begin(), x.end()));
    EXPECT_EQ(RowsText(SpelledWhole(x, {4}), x),
              "input x " + dims + "\nparameter g [4]\nparameter b [4]\ny " + dims +
                  " = layer_normalization(x, g, b) epsilon=0.25\noutput y\n");
  }
  OnnxBuilder turned = Spelled({2, 4}, {4});
  turned.Node("Mul", {"g", "n"}, {"p"}).Node("Add", {"b", "p"}, {"y"}).Output("y");
  EXPECT_THAT(RowsText(turned, {2, 4}),
              HasSubstr("y [2,4] = layer_normalization(x, g, b) epsilon=0.25\n"));
}

TEST(RowNormalizationTrainingTest, WhatHasNoScaleOrShiftOfItsRowsKeepsThemApart) {
  OnnxBuilder unshifted = Spelled({2, 4}, {4});
  unshifted.Node("Mul", {"n", "g"}, {"y"}).Output("y");
  EXPECT_THAT(RowsText(unshifted, {2, 4}),
              HasSubstr("n [2,4] = layer_normalization(x) epsilon=0.25\ny [2,4] = mul(n, g)\n"));
  EXPECT_THAT(RowsText(SpelledWhole({2, 4}, {2, 4}), {2, 4}),
              HasSubstr("n [2,4] = layer_normalization(x) epsilon=0.25\n"
                        "p [2,4] = mul(n, g)\ny [2,4] = sum(p, b)\n"));
  OnnxBuilder read_again = Spelled({2, 4}, {4});
  read_again.Node("Mul", {"n", "g"}, {"p"}).Node("Add", {"p", "b"}, {"y"}).Output("y");
  EXPECT_THAT(RowsText(read_again.Output("p"), {2, 4}), HasSubstr("p [2,4] = mul(n, g)\n"));
  EXPECT_THAT(RowsText(Spelled({2, 3, 2, 1, 2, 4}, {4}).Output("n"), {2, 3, 2, 1, 2, 4}),
              Not(HasSubstr("layer_normalization")))
      << "of more dimensions than the primitive takes";
}

TEST(RowNormalizationTrainingTest, FrozenRowsOfTheExportedForm) {
  const OnnxBuilder model = SpelledWhole({2, 3, 4}, {4});
  EXPECT_THAT(RowsText(model, {2, 3, 4}, {.frozen = {"b"}}),
              HasSubstr("y [2,3,4] = layer_normalization(x, g, y/b) epsilon=0.25\n"));
  EXPECT_THAT(RowsText(model, {2, 3, 4}, {.frozen = {"g"}}),
              HasSubstr("p [2,3,4] = layer_normalization(x) epsilon=0.25 scaled\n"
                        "y [2,3,4] = add(p, b)\n"));
  EXPECT_THAT(RowsText(model, {2, 3, 4}, {.frozen = {"g", "b"}}),
              HasSubstr("y [2,3,4] = layer_normalization(x) epsilon=0.25 scaled\n"));
}

TEST(RowNormalizationTrainingTest, TheSameAnswersAsInference) {
  const std::pair<OnnxBuilder, Shape> kCases[] = {
      {NodeOfRows({3, 7}, {7}, -1), {3, 7}},
      {NodeOfRows({2, 3, 4}, {3, 4}, 1), {2, 3, 4}},
      {NodeOfRows({2, 3, 4}, {4}, -1, /*has_shift=*/false), {2, 3, 4}},
      {SpelledWhole({2, 3, 2, 4}, {4}), {2, 3, 2, 4}}};
  for (const auto& [builder, shape] : kCases) {
    const Dims dims(shape.begin(), shape.end());
    const auto model = Open(builder);
    ASSERT_TRUE(model.ok()) << model.status();
    const std::vector<float> numbers = testing::RandomFloats(*ElementCount(dims), 7, -1, 1);
    const std::vector<Elements> inputs = {{numbers.begin(), numbers.end()}};
    for (const TrainingPurpose& purpose : {TrainingPurpose{}, TrainingPurpose{.frozen = {"g"}}}) {
      const auto training = (*model)->SpecializeForTraining({dims}, purpose);
      ASSERT_TRUE(training.ok()) << training.status();
      ExpectNear(Interpret(*training, inputs)[0],
                 Interpret((*model)->Specialize({dims}).value(), inputs)[0], 1e-6);
    }
  }
}

}  // namespace
}  // namespace tilewire::reader
