// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements or that are made of several operations: node, input dims, and what
// they become.
#include <gmock/gmock.h>

#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

using testing::Float;
using ::testing::HasSubstr;
using testing::Int;
using testing::Ints;
using testing::OnnxBuilder;
using testing::String;

std::vector<OpCase> SelectionCases() {
  return {
      {"a slice, counted from the back",
       9,
       "Slice",
       {Ints("starts", {1, -2}), Ints("ends", {3, 9}), Ints("axes", {1, 2})},
       {2, 4, 5},
       "y [2,2,2] = select(x) 1:1 x2 2:3 x2"},
      {"a slice of the first axes",
       9,
       "Slice",
       {Ints("starts", {1, 2}), Ints("ends", {2, 4})},
       {2, 4, 5},
       "y [1,2,5] = select(x) 0:1 x1 1:2 x2"},
      {"zeros around",
       10,
       "Pad",
       {Ints("pads", {0, 0, 1, 0, 0, 2})},
       {2, 4, 5},
       "y [2,4,8] = select(x) 2:fill(0) x1+0 x5+fill(0) x2"},
      {"mirrored edges",
       10,
       "Pad",
       {String("mode", "reflect"), Ints("pads", {0, 2, 0, 1})},
       {2, 4},
       "y [2,7] = select(x) 1:2 by -1 x2+0 x4+2 by -1 x1"},
      {"repeated edges",
       10,
       "Pad",
       {String("mode", "edge"), Ints("pads", {0, 2, 0, 1})},
       {2, 4},
       "y [2,7] = select(x) 1:0 by 0 x2+0 x4+3 by 0 x1"},
      {"negative pads cut",
       10,
       "Pad",
       {Ints("pads", {0, -1, 0, -1})},
       {2, 4},
       "y [2,2] = select(x) 1:1 x2"},
      {"pixels from channels",
       13,
       "DepthToSpace",
       {Int("blocksize", 2)},
       {1, 8, 2, 3},
       "y/split [1,2,2,2,2,3] = reshape(x)\ny/moved [1,2,2,2,3,2] = transpose(y/split) "
       "order=[0,3,4,1,5,2]\ny [1,2,4,6] = reshape(y/moved)"},
      {"a sum along one axis",
       11,
       "ReduceSum",
       {Ints("axes", {1}), Int("keepdims", 0)},
       {2, 4, 5},
       "y/kept [2,1,5] = reduce_sum(x)\ny [2,5] = reshape(y/kept)"},
      {"a square root of squares",
       11,
       "ReduceL2",
       {Ints("axes", {-1})},
       {2, 4},
       "y/squares [2,1] = reduce_sum_of_squares(x)\ny [2,1] = activation(y/squares) sqrt(0,0)"},
      {"a norm of any order",
       13,
       "GlobalLpPool",
       {Int("p", 3)},
       {1, 2, 4},
       "y/sizes [1,2,4] = activation(x) abs(0,0)\ny/powers [1,2,4] = activation(y/sizes) pow(1,3)\n"
       "y/sum [1,2,1] = reduce_sum(y/powers)\ny [1,2,1] = activation(y/sum) pow(1,0.333333)"},
      {"infinity of one sign",
       13,
       "IsInf",
       {Int("detect_positive", 0)},
       {2, 4},
       "y/y/sought [1] = literal() elements=1\ny [2,4] = equal(x, y/y/sought)"},
      {"counted padding, and a window that ceil_mode adds",
       13,
       "AveragePool",
       {Ints("kernel_shape", {3}), Ints("strides", {2}), Ints("pads", {1, 1}), Int("ceil_mode", 1),
        Int("count_include_pad", 1)},
       {1, 4, 6},
       "y/padded [1,4,8] = select(x) 2:fill(0) x1+0 x6+fill(0) x1\n"
       "y [1,4,4] = avg_exclude_padding(y/padded) kernel=[3] strides=[2] pads=[0],[1]"},
      {"a logarithm", 13, "Log", {}, {2, 4}, "y [2,4] = log(x)"},
      {"a negation is linear", 13, "Neg", {}, {2, 4}, "y [2,4] = activation(x) linear(-1,0)"},
      {"thresholds", 13, "Shrink", {Float("lambd", 1)}, {2, 4}, "y [2,4] = shrink(x) (1,0)"},
  };
}

TEST(SelectionOpsTest, OneInput) { ExpectBuilt(SelectionCases()); }

TEST(SelectionOpsTest, SplitGivesEachPartItsName) {
  OnnxBuilder model;
  model.Input("x", {1, 6, 2, 2}).Integers("parts", {4, 2});
  model.Node("Split", {"x", "parts"}, {"a", "b"}, {Int("axis", 1)}).Output("b").Output("a");
  EXPECT_EQ(BuiltText(model, {{1, 6, 2, 2}}),
            "input x [1,6,2,2]\na [1,4,2,2] = select(x) 1:0 x4\nb [1,2,2,2] = select(x) 1:4 x2\n"
            "output b\noutput a\n");
}

TEST(SelectionOpsTest, SliceWithStepsGatherExpandTile) {
  OnnxBuilder model;
  model.Input("x", {2, 5}).Integers("from", {-1}).Integers("to", {-9}).Integers("axis", {1});
  model.Integers("step", {-2}).Integers("rows", {1, 1, 0}).Integers("shape", {4, 1, 3});
  model.Integers("times", {1, 1, 2});
  model.Node("Slice", {"x", "from", "to", "axis", "step"}, {"a"})
      .Node("Gather", {"a", "rows"}, {"b"})
      .Node("Expand", {"b", "shape"}, {"c"})
      .Node("Tile", {"c", "times"}, {"y"})
      .Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 5}}),
            "input x [2,5]\na [2,3] = select(x) 1:4 by -2 x3\n"
            "b [3,3] = select(a) 0:1 by 0 x2+0 x1\n"
            "c/raised [1,3,3] = reshape(b)\nc [4,3,3] = select(c/raised) 0:0 by 0 x4\n"
            "y [4,3,6] = select(c) 2:0 x3+0 x3\noutput y\n");
}

TEST(SelectionOpsTest, BroadcastFunctionsTakeComputedTensorsAndConstants) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Input("gate", {1, 2, 1, 1}).Floats("rows", {3, 1});
  model.Node("Mul", {"x", "gate"}, {"a"}).Node("Add", {"a", "rows"}, {"b"});
  model.Node("Max", {"b", "x", "a"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{1, 2, 3, 3}, {1, 2, 1, 1}}),
            "input x [1,2,3,3]\ninput gate [1,2,1,1]\na [1,2,3,3] = mul(x, gate)\n"
            "b/rows [3,1] = literal() elements=3\nb [1,2,3,3] = add(a, b/rows)\n"
            "y/1 [1,2,3,3] = max(b, x)\ny [1,2,3,3] = max(y/1, a)\noutput y\n");
}

TEST(SelectionOpsTest, ResizeTakesOrMixesNeighbours) {
  OnnxBuilder model;
  model.Input("x", {1, 1, 2, 2}).Floats("roi", {0}).Floats("scales", {4}, {1, 1, 2, 1});
  model.Node(
      "Resize", {"x", "roi", "scales"}, {"a"},
      {String("coordinate_transformation_mode", "asymmetric"), String("nearest_mode", "floor")});
  model.Node("Resize", {"x", "roi", "scales"}, {"b"}, {String("mode", "linear")})
      .Output("a")
      .Output("b");
  EXPECT_EQ(BuiltText(model, {{1, 1, 2, 2}}),
            "input x [1,1,2,2]\na [1,1,4,2] = select(x) 2:0 by 0 x2+1 by 0 x2\n"
            "b [1,1,4,2] = interpolate(x) axis=2 taps=2\noutput a\noutput b\n");
}

TEST(SelectionOpsTest, PadTakesAComputedValue) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Input("v", {1}).Integers("pads", {0, 1, 0, -1});
  model.Node("Pad", {"x", "pads", "v"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}, {1}}),
            "input x [2,3]\ninput v [1]\ny/zeros [2,3] = select(x) 1:fill(0) x1+0 x2\n"
            "y/one [1,1] = literal() elements=1\n"
            "y/inside [2,3] = select(y/one) 0:0 by 0 x2 1:fill(0) x1+0 by 0 x2\n"
            "y [2,3] = where(y/inside, y/zeros, v)\noutput y\n");
}

TEST(SelectionOpsTest, IntegersReduceAlongAxes) {
  OnnxBuilder model;
  model.Input("x", {1, 1}).Integers("all", {1, -2, 3, 4}).Integers("square", {2, 2});
  model.Node("Reshape", {"all", "square"}, {"m"});
  model.Node("ReduceSumSquare", {"m"}, {"s"}, {Ints("axes", {1}), Int("keepdims", 0)});
  model.Node("ReduceMax", {"m"}, {"n"}, {Ints("axes", {0}), Int("keepdims", 0)});
  model.Node("Min", {"s", "n"}, {"shape"}).Node("Expand", {"x", "shape"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 1}}), HasSubstr("y [3,4] = ")) << "of [5,25] and [3,4]";
}

TEST(SelectionOpsTest, ResizeCropsAndFillsWhatIsOutside) {
  OnnxBuilder model;
  model.Input("x", {4, 1}).Floats("roi", {4}, {0.5f, 0, 1.5f, 1}).Floats("none", {0});
  model.Integers("sizes", {4, 1}).Integers("half", {2, 1});
  model.Node("Resize", {"x", "roi", "none", "sizes"}, {"a"},
             {String("coordinate_transformation_mode", "tf_crop_and_resize"),
              Float("extrapolation_value", 9)});
  model.Node("Resize", {"x", "roi", "none", "sizes"}, {"b"},
             {String("coordinate_transformation_mode", "tf_crop_and_resize"),
              String("mode", "linear"), Float("extrapolation_value", 9)});
  model.Node("Resize", {"x", "none", "none", "half"}, {"c"},
             {String("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
              String("nearest_mode", "floor")});
  model.Output("a").Output("b").Output("c");
  EXPECT_EQ(BuiltText(model, {{4, 1}}),
            "input x [4,1]\na [4,1] = select(x) 0:1 x2+fill(9) x2\n"
            "b/0 [4,1] = interpolate(x) axis=0 taps=2\nb [4,1] = select(b/0) 0:0 x2+fill(9) x2\n"
            "c [2,1] = select(x) 0:1 by 2 x2\noutput a\noutput b\noutput c\n");
}

TEST(SelectionOpsTest, OptionalOutputs) {
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

TEST(SelectionOpsTest, BatchNormalizationByComputedStatisticsAndByTheBatch) {
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

TEST(SelectionOpsTest, BatchNormalizationOfElements) {
  OnnxBuilder model(7);
  model.Input("x", {2, 2, 3}).Floats("c", {2, 3}, {1, 2, 3, 4, 5, 6});
  model.Node("BatchNormalization", {"x", "c", "c", "c", "c"}, {"y"}, {Int("spatial", 0)});
  const std::string text = BuiltText(model.Output("y"), {{2, 2, 3}});
  EXPECT_THAT(text, HasSubstr("y/standardized [2,2,3] = div(y/centred, y/deviation)\n"));
  EXPECT_THAT(text, HasSubstr("y [2,2,3] = add(y/scaled, y/c)\n"));
}

TEST(SelectionOpsTest, FunctionsOfComputedAndOfMixedOperands) {
  OnnxBuilder model;
  model.Input("x", {2, 2}).Input("low", {1}).Integers("powers", {2, 3});
  model.Node("Clip", {"x", "low"}, {"a"}).Node("Mod", {"a", "x"}, {"b"});
  model.Node("Mod", {"a", "x"}, {"c"}, {Int("fmod", 1)}).Node("Pow", {"c", "powers"}, {"d"});
  model.Node("Pow", {"powers", "d"}, {"e"}).Output("b").Output("e");
  EXPECT_EQ(BuiltText(model, {{2, 2}, {1}}),
            "input x [2,2]\ninput low [1]\na [2,2] = max(x, low)\nb [2,2] = floor_mod(a, x)\n"
            "c [2,2] = mod(a, x)\nd/powers [2] = literal() elements=2\n"
            "d [2,2] = pow(c, d/powers)\ne/powers [2] = literal() elements=2\n"
            "e/exact [2,2] = pow(e/powers, d)\ne [2,2] = truncate(e/exact)\n"
            "output b\noutput e\n");
}

// Rows and columns of the greatest element, counted through the plane.
TEST(SelectionOpsTest, IntegersThatAreComputedDivideAsIntegers) {
  OnnxBuilder model;
  model.Input("x", {2, 15}).Integers("five", {5}).Integers("two", {2});
  model.Node("ArgMax", {"x"}, {"at"}, {Int("axis", 1)}).Node("Div", {"at", "five"}, {"row"});
  model.Node("Mod", {"at", "five"}, {"column"})
      .Node("Concat", {"row", "column"}, {"y"}, {Int("axis", 1)});
  model.Node("Pow", {"at", "two"}, {"square"}).Output("y").Output("square");
  EXPECT_EQ(BuiltText(model, {{2, 15}}),
            "input x [2,15]\nat [2,1] = top_k(x) axis=1 indices\n"
            "row/five [1] = literal() elements=1\nrow/exact [2,1] = div(at, row/five)\n"
            "row [2,1] = truncate(row/exact)\ncolumn/five [1] = literal() elements=1\n"
            "column [2,1] = floor_mod(at, column/five)\ny [2,2] = concat(row, column) axis=1\n"
            "square/two [1] = literal() elements=1\nsquare/exact [2,1] = pow(at, square/two)\n"
            "square [2,1] = truncate(square/exact)\noutput y\noutput square\n");
}

TEST(SelectionOpsTest, TransposedConvolutionIsOneOfASpreadSource) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Floats("w", {2, 4, 3, 3});
  model
      .Node("ConvTranspose", {"x", "w"}, {"y"},
            {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1}), Ints("output_padding", {1, 1})})
      .Output("y");
  const std::string text = BuiltText(model, {{1, 2, 3, 3}});
  EXPECT_THAT(text, HasSubstr("y/spread [1,2,6,6] = select(x)"));
  EXPECT_THAT(text, HasSubstr("y [1,4,6,6] = convolution(y/spread) w/turned[4,2,3,3] "
                              "pads=[1,1],[1,1]"));
}

TEST(SelectionOpsTest, GatherOfComputedIndices) {
  OnnxBuilder model;
  model.Input("x", {2, 5}).Floats("table", {5, 3});
  model.Node("ArgMax", {"x"}, {"at"}, {Int("axis", 1), Int("keepdims", 0)});
  model.Node("Gather", {"table", "at"}, {"y"})
      .Node("Gather", {"x", "at"}, {"z"}, {Int("axis", -1)});
  model.Output("y").Output("z");
  const std::string text = BuiltText(model, {{2, 5}});
  EXPECT_THAT(text, HasSubstr("y [2,3] = gather(y/table, at) axis=0\n"));
  EXPECT_THAT(text, HasSubstr("z [2,2] = gather(x, at) axis=1\n"));
}

TEST(SelectionOpsTest, ConvolutionsWithComputedWeights) {
  OnnxBuilder model;
  model.Input("x", {1, 4, 5, 5}).Input("w", {4, 2, 3, 3}).Input("b", {4}).Floats("k", {4, 2, 3, 3});
  model.Node("Conv", {"x", "w", "b"}, {"y"}, {Int("group", 2), Ints("strides", {2, 2})});
  model.Node("Conv", {"x", "k", "b"}, {"z"}, {Int("group", 2)});
  model.Node("ConvTranspose", {"x", "w"}, {"t"}, {Int("group", 2)});
  model.Output("y").Output("z").Output("t");
  const std::string text = BuiltText(model, {{1, 4, 5, 5}, {4, 2, 3, 3}, {4}});
  EXPECT_THAT(text, HasSubstr("y [1,4,2,2] = computed_convolution(x, w, b) groups=2 "
                              "strides=[2,2]\n"));
  EXPECT_THAT(text,
              HasSubstr("z/unbiased [1,4,3,3] = convolution(x) k[4,2,3,3] groups=2\n"
                        "z/bias [4,1,1] = reshape(b)\nz [1,4,3,3] = add(z/unbiased, z/bias)"));
  EXPECT_THAT(text, HasSubstr("t/groups [2,2,2,3,3] = reshape(w)\n"
                              "t/swapped [2,2,2,3,3] = transpose(t/groups) order=[0,2,1,3,4]\n"
                              "t/outputs [4,2,3,3] = reshape(t/swapped)\n"
                              "t/turned [4,2,3,3] = select(t/outputs) 2:2 by -1 x3 3:2 by -1 x3\n"
                              "t [1,4,7,7] = computed_convolution(x, t/turned) groups=2 "
                              "pads=[2,2],[2,2]"));
}

TEST(SelectionOpsTest, QuantisedConvolutionWithComputedWeightsAndScales) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 4, 4}).Input("w", {3, 2, 1, 1}).Integers("bias", {1, 2, 3});
  model.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Node("DynamicQuantizeLinear", {"w"}, {"wq", "ws", "wz"});
  model.Node("QLinearConv", {"q", "s", "z", "wq", "ws", "wz", "s", "z", "bias"}, {"y"});
  model.Node("ConvInteger", {"q", "wq", "z", "wz"}, {"i"}).Output("y").Output("i");
  const std::string text = BuiltText(model, {{1, 2, 4, 4}, {3, 2, 1, 1}});
  EXPECT_THAT(text,
              HasSubstr("y/real [1,3,4,4] = computed_convolution(y/src, y/weights, y/bias4)"));
  EXPECT_THAT(text, HasSubstr("y u8 [1,3,4,4] = quantize("));
  EXPECT_THAT(text, HasSubstr("i [1,3,4,4] = computed_convolution(i/src, i/weights)"));
}

TEST(SelectionOpsTest, MaxPoolSaysWhereMaximaStand) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 6, 6});
  model.Node("MaxPool", {"x"}, {"a", "i"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Node("MaxPool", {"x"}, {"b", "j"},
             {Ints("kernel_shape", {2, 1}), Ints("dilations", {3, 1}), Int("storage_order", 1),
              Ints("pads", {1, 0, 0, 0})});
  model.Output("a").Output("i").Output("j");
  const std::string text = BuiltText(model, {{1, 2, 6, 6}});
  EXPECT_THAT(text, HasSubstr("i [1,2,3,3] = max_window(x) index kernel=[2,2] strides=[2,2]\n"
                              "a [1,2,3,3] = max_pooling(x) kernel=[2,2] strides=[2,2]\n"));
  EXPECT_THAT(text, HasSubstr("j [1,2,4,6] = max_window(x) column_major_index kernel=[2,1] "
                              "dilations=[2,0] pads=[1,0]\n"));
}

TEST(SelectionOpsTest, IntegersAreKnownAtLoad) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Integers("one", {1}).Node("Equal", {"one", "one"}, {"is"});
  model.Node("Where", {"is", "one", "one"}, {"rows"}).Node("Expand", {"x", "rows"}, {"y"});
  model.Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}}), "input x [2,3]\noutput x\n");
}

}  // namespace
}  // namespace tilewire::graph
