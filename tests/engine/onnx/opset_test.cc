// SPDX-License-Identifier: Apache-2.0
//
// The forms that opsets 18 to 25 brought: what they compute (numbers of the operators'
// documentation, or reckoned by hand), and where a form is refused before its opset.
#include <functional>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

struct FormCase {
  const char* why;
  int64_t opset;
  std::vector<int64_t> src;  // dims of x, whose elements count from 1
  std::function<void(OnnxBuilder*)> build;
  std::vector<double> expected;  // of y
};

Elements Counted(const Dims& dims) {
  Elements elements(*ElementCount(dims));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<double>(i + 1);
  return elements;
}

void ExpectComputed(const std::vector<FormCase>& cases) {
  for (const FormCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(c.opset);
    model.Input("x", c.src);
    c.build(&model);
    model.Output("y");
    const Dims dims(c.src.begin(), c.src.end());
    const absl::StatusOr<network::Network> network = Built(model, {dims});
    ASSERT_TRUE(network.ok()) << network.status();
    const std::vector<Elements> outputs = Interpret(*network, {Counted(dims)});
    ASSERT_EQ(outputs.size(), 1u);
    ASSERT_EQ(outputs[0].size(), c.expected.size());
    for (size_t i = 0; i < c.expected.size(); ++i)
      EXPECT_NEAR(outputs[0][i], c.expected[i], 1e-5) << i;
  }
}

// A Resize with the attributes, of `axes` by scales or sizes.
auto Resize(std::vector<float> scales, std::vector<int64_t> sizes,
            std::vector<onnx::AttributeProto> attributes) {
  return [=](OnnxBuilder* model) {
    model->Floats("scales", {static_cast<int64_t>(scales.size())}, scales);
    model->Integers("sizes", sizes);
    model->Node("Resize", {"x", "", sizes.empty() ? "scales" : "", sizes.empty() ? "" : "sizes"},
                {"y"}, attributes);
  };
}

TEST(OpsetTest, ResizesOfOpset18) {
  const onnx::AttributeProto axes = Ints("axes", {2, 3}), smooth = Int("antialias", 1);
  ExpectComputed({
      {"linear antialias",
       18,
       {1, 1, 4, 4},
       Resize({1, 1, 0.6f, 0.6f}, {}, {String("mode", "linear"), smooth}),
       {2.875, 4.5, 9.375, 11}},
      {"cubic antialias",
       18,
       {1, 1, 4, 4},
       Resize({1, 1, 0.6f, 0.6f}, {}, {String("mode", "cubic"), smooth}),
       {2.5180721, 4.2858863, 9.589329, 11.357142}},
      {"antialias of a larger result changes nothing",
       18,
       {1, 1, 1, 2},
       Resize({1, 2}, {}, {String("mode", "linear"), smooth, axes}),
       {1, 1.25, 1.75, 2}},
      {"not larger than the sizes, in one ratio",
       18,
       {1, 1, 2, 4},
       Resize({}, {1, 3}, {axes, String("keep_aspect_ratio_policy", "not_larger")}),
       {1, 3}},
      {"not smaller than the sizes",
       18,
       {1, 1, 2, 4},
       Resize({}, {1, 3}, {axes, String("keep_aspect_ratio_policy", "not_smaller")}),
       {1, 2, 4, 5, 6, 8}},
      {"axes in any order",
       18,
       {1, 1, 2, 2},
       Resize({}, {2, 4}, {Ints("axes", {3, 2})}),
       {1, 2, 1, 2, 3, 4, 3, 4}},
      {"a symmetric region of what was rounded down",
       19,
       {1, 1, 2, 2},
       Resize({1, 1, 2.3f, 2.94f}, {},
              {String("mode", "linear"),
               String("coordinate_transformation_mode", "half_pixel_symmetric")}),
       {1,          1.15986395, 1.5,        1.84013605, 2,          1.56521738, 1.72508133,
        2.06521738, 2.40535343, 2.56521738, 2.43478262, 2.59464657, 2.93478262, 3.27491867,
        3.43478262, 3,          3.15986395, 3.5,        3.84013605, 4}},
  });
}

TEST(OpsetTest, PartsAndPads) {
  ExpectComputed({
      {"the last of equal parts is smaller",
       18,
       {7},
       [](OnnxBuilder* model) {
         model->Node("Split", {"x"}, {"a", "b", "y"}, {Int("num_outputs", 3), Int("axis", 0)});
       },
       {7}},
      {"pads of one axis",
       18,
       {2, 2},
       [](OnnxBuilder* model) {
         model->Integers("pads", {1, 0}).Integers("axes", {-1}).Floats("value", {1}, {9});
         model->Node("Pad", {"x", "pads", "value", "axes"}, {"y"});
       },
       {9, 1, 2, 9, 3, 4}},
      {"wraps around more than once",
       19,
       {3},
       [](OnnxBuilder* model) {
         model->Integers("pads", {2, 4});
         model->Node("Pad", {"x", "pads"}, {"y"}, {String("mode", "wrap")});
       },
       {2, 3, 1, 2, 3, 1, 2, 3, 1}},
  });
}

// An AveragePool of two elements, one apart, with one element of padding at each end.
auto ApartBy2(int64_t include) {
  return [include](OnnxBuilder* model) {
    model->Node("AveragePool", {"x"}, {"y"},
                {Ints("kernel_shape", {2}), Ints("dilations", {2}), Ints("pads", {1, 1}),
                 Int("count_include_pad", include)});
  };
}

TEST(OpsetTest, DilatedAverages) {
  ExpectComputed({
      {"of two dimensions",
       19,
       {1, 1, 4, 4},
       [](OnnxBuilder* model) {
         model->Node("AveragePool", {"x"}, {"y"},
                     {Ints("kernel_shape", {2, 2}), Ints("dilations", {2, 2}),
                      Ints("strides", {1, 1}), Int("ceil_mode", 1)});
       },
       {6, 7, 10, 11}},
      {"padding does not count", 19, {1, 1, 4}, ApartBy2(0), {2, 2, 3, 3}},
      {"padding counts", 19, {1, 1, 4}, ApartBy2(1), {1, 2, 3, 1.5}},
  });
}

// The reduction of x along the axes of an input, with the attributes.
auto ReducedBy(std::string op, std::vector<int64_t> axes,
               std::vector<onnx::AttributeProto> attributes) {
  return [=](OnnxBuilder* model) {
    model->Integers("axes", axes).Node(op, {"x", "axes"}, {"y"}, attributes);
  };
}

TEST(OpsetTest, AxesOfReductionsAreAnInput) {
  const onnx::AttributeProto noop = Int("noop_with_empty_axes", 1);
  ExpectComputed({
      {"one axis", 18, {2, 3}, ReducedBy("ReduceMean", {1}, {Int("keepdims", 0)}), {2, 5}},
      {"all axes", 18, {2, 3}, ReducedBy("ReduceMax", {}, {}), {6}},
      {"no axis", 20, {2, 2}, ReducedBy("ReduceMin", {}, {noop}), {1, 2, 3, 4}},
      {"squares", 18, {2, 2}, ReducedBy("ReduceSumSquare", {-1}, {}), {5, 25}},
      {"a norm", 18, {1, 2}, ReducedBy("ReduceL2", {1}, {}), {2.236068}},
      {"pixels",
       20,
       {1, 2, 2, 2},
       ReducedBy("ReduceMean", {-1, -2}, {Int("keepdims", 1)}),
       {2.5, 6.5}},
  });
}

TEST(OpsetTest, Activations) {
  const auto node = [](std::string op, std::vector<onnx::AttributeProto> attributes = {}) {
    return [=](OnnxBuilder* model) { model->Node(op, {"x"}, {"y"}, attributes); };
  };
  ExpectComputed({
      {"by erf", 20, {2}, node("Gelu"), {0.841345, 1.954500}},
      {"by tanh", 20, {2}, node("Gelu", {String("approximate", "tanh")}), {0.841192, 1.954598}},
      {"mish", 18, {2}, node("Mish"), {0.865098, 1.943959}},
      {"swish", 24, {2}, node("Swish", {Float("alpha", 2)}), {0.880797, 1.964028}},
  });
}

// Attributes that exporters write out though they have their defaults change nothing.
TEST(OpsetTest, DefaultsThatAreWrittenOut) {
  ExpectComputed({
      {"Cast",
       25,
       {2},
       [](OnnxBuilder* model) {
         model->Node(
             "Cast", {"x"}, {"y"},
             {Int("to", onnx::TensorProto::FLOAT), Int("saturate", 1), String("round_mode", "up")});
       },
       {1, 2}},
      {"QuantizeLinear and DequantizeLinear",
       25,
       {2},
       [](OnnxBuilder* model) {
         model->Floats("scale", {1}, {0.5f});
         model->Node("QuantizeLinear", {"x", "scale"}, {"q"},
                     {Int("axis", 0), Int("saturate", 1), Int("block_size", 0), Int("precision", 0),
                      Int("output_dtype", onnx::TensorProto::INT8)});
         model->Node("DequantizeLinear", {"q", "scale"}, {"y"},
                     {Int("axis", 0), Int("block_size", 0), Int("output_dtype", 0)});
       },
       {1, 2}},
  });
}

struct TooEarly {
  int64_t opset;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  const char* message;
};

TEST(OpsetTest, FormsAreRefusedOutsideTheirOpsets) {
  const onnx::AttributeProto linear = String("mode", "linear");
  const std::vector<TooEarly> cases = {
      {17, "ReduceMean", {"x", "axes"}, {}, "axes are an attribute before opset 18"},
      {18, "ReduceMean", {"x"}, {Ints("axes", {1})}, "axes are input 1 from opset 18 on"},
      {17, "Resize", {"x", "", "scales"}, {Int("antialias", 0)}, "antialias exists from opset 18"},
      {18,
       "Resize",
       {"x", "", "scales"},
       {String("coordinate_transformation_mode", "half_pixel_symmetric")},
       "half_pixel_symmetric exists from opset 19"},
      {17, "Split", {"x"}, {Int("num_outputs", 1)}, "num_outputs"},
      {18, "Split", {"x"}, {}, "num_outputs 0 of 1 outputs"},
      {18, "Pad", {"x", "pads"}, {String("mode", "wrap")}, "mode 'wrap'"},
      {17, "Pad", {"x", "pads", "", "axes"}, {}, "input 3 exists from opset 18 on"},
      {18,
       "AveragePool",
       {"x"},
       {Ints("kernel_shape", {1, 1}), Ints("dilations", {1, 1})},
       "dilations exist from opset 19 on"},
      {19, "Gelu", {"x"}, {}, "exists from opset 20 on"},
      {17, "Mish", {"x"}, {}, "exists from opset 18 on"},
  };
  for (const TooEarly& c : cases) {
    SCOPED_TRACE(c.message);
    OnnxBuilder model(c.opset);
    model.Input("x", {1, 1, 2, 2}).Floats("scales", {4}, {1, 1, 2, 2}).Integers("axes", {1});
    model.Integers("pads", {0, 0, 0, 0, 0, 0, 0, 0});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    EXPECT_THAT(Open(model),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

// Attributes took the place of inputs, or had other names, and an attribute without a meaning.
TEST(OpsetTest, FormsBeforeOpset6) {
  const onnx::AttributeProto consumed = Ints("consumed_inputs", {0});
  ExpectComputed({
      {"a result over its input",
       1,
       {1, 2},
       [&](OnnxBuilder* m) { m->Node("Neg", {"x"}, {"y"}, {consumed}); },
       {-1, -2}},
      {"Cast to a type by its name",
       5,
       {1, 2},
       [](OnnxBuilder* m) {
         m->Node("Cast", {"x"}, {"i"}, {String("to", "INT32")});
         m->Node("Cast", {"i"}, {"y"}, {String("to", "FLOAT")});
       },
       {1, 2}},
      {"Concat along the channels",
       3,
       {1, 2},
       [](OnnxBuilder* m) {
         m->Node("Concat", {"x", "x"}, {"y"});
       },
       {1, 2, 1, 2}},
      {"Reshape by an attribute",
       4,
       {2, 2},
       [&](OnnxBuilder* m) {
         m->Node("Reshape", {"x"}, {"r"}, {Ints("shape", {4, -1}), consumed});
         m->Node("Sum", {"r", "r"}, {"y"});
       },
       {2, 4, 6, 8}},
      {"Pad by paddings",
       1,
       {1, 2},
       [](OnnxBuilder* m) {
         m->Node("Pad", {"x"}, {"y"}, {Ints("paddings", {0, 1, 0, 0})});
       },
       {0, 1, 2}},
  });
}

TEST(OpsetTest, InputsAndAttributesBeforeOpset7) {
  ExpectComputed({
      {"Split by an input",
       1,
       {3, 1},
       [](OnnxBuilder* m) {
         m->Integers("parts", {1, 2}).Node("Split", {"x", "parts"}, {"z", "y"}, {Int("axis", 0)});
       },
       {2, 3}},
      {"Tile along one axis",
       5,
       {1, 2},
       [](OnnxBuilder* m) {
         m->Integers("times", {2})
             .Integers("axis", {1})
             .Node("Tile", {"x", "times", "axis"}, {"y"});
       },
       {1, 2, 1, 2}},
      {"Upsample by two scales",
       6,
       {1, 1, 1, 2},
       [](OnnxBuilder* m) {
         m->Node("Upsample", {"x"}, {"y"}, {Float("height_scale", 1), Float("width_scale", 2)});
       },
       {1, 1, 2, 2}},
      {"a power that is a real number",
       1,
       {1, 1, 2, 2},
       [](OnnxBuilder* m) { m->Node("GlobalLpPool", {"x"}, {"y"}, {Float("p", 1)}); },
       {10}},
  });
}

// There was one opset before IR version 3, and files did not name it.
TEST(OpsetTest, OldFilesNameNoOpset) {
  OnnxBuilder model(1);
  model.Input("x", {2}).Node("Relu", {"x"}, {"y"}, {Ints("consumed_inputs", {0})}).Output("y");
  model.proto().clear_opset_import();
  for (const int64_t version : {1, 2}) {
    model.proto().set_ir_version(version);
    EXPECT_TRUE(Open(model).ok()) << Open(model).status();
  }
  model.proto().set_ir_version(3);
  EXPECT_THAT(Open(model),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "no opset_import"));
}

// A file of other domains alone, as converters of scikit-learn write it, needs no opset of ONNX's
// own; nodes of that domain do.
TEST(OpsetTest, FilesOfOtherDomainsAlone) {
  OnnxBuilder model;
  model.Input("x", {2}).Node("QuickGelu", {"x"}, {"y"}).Output("y");
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  model.proto().clear_opset_import();
  model.proto().add_opset_import()->set_domain("com.microsoft");
  model.proto().mutable_opset_import(0)->set_version(1);
  EXPECT_TRUE(Open(model).ok()) << Open(model).status();
  model.graph().mutable_node(0)->set_op_type("Relu");
  model.graph().mutable_node(0)->clear_domain();
  EXPECT_THAT(Open(model), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                             "(Relu of ai.onnx, not imported): this"));
}

// Unknown values are refused by name.
TEST(OpsetTest, UnknownValuesOfAttributes) {
  const std::vector<TooEarly> cases = {
      {20,
       "Resize",
       {"x", "", "scales"},
       {String("coordinate_transformation_mode", "corner")},
       "coordinate_transformation_mode 'corner'"},
      {20, "Resize", {"x", "", "scales"}, {String("nearest_mode", "near")}, "nearest_mode 'near'"},
      {20,
       "Resize",
       {"x", "", "scales"},
       {String("keep_aspect_ratio_policy", "no")},
       "keep_aspect_ratio_policy 'no'"},
      {20, "Gelu", {"x"}, {String("approximate", "fast")}, "approximate 'fast'"},
      {25, "Cast", {"x"}, {Int("to", 1), String("round_mode", "odd")}, "round_mode 'odd'"},
      {25, "Cast", {"x"}, {Int("to", 1), Int("saturate", 2)}, "saturate 2"},
  };
  for (const TooEarly& c : cases) {
    SCOPED_TRACE(c.message);
    OnnxBuilder model(c.opset);
    model.Input("x", {1, 1, 2, 2}).Floats("scales", {4}, {1, 1, 2, 2});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    EXPECT_THAT(Open(model),
                testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace tilewire::reader
