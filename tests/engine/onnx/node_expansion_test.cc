// SPDX-License-Identifier: Apache-2.0
//
// Functions of a file (engine/onnx/node_expansion.cc): calls become what the functions hold.
#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {
namespace {

using testing::StatusIs;

// Adds a function of domain "own" with the nodes of `body`.
onnx::FunctionProto& AddFunction(OnnxBuilder* model, const std::string& name, OnnxBuilder body,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs, int64_t opset = 17) {
  onnx::FunctionProto& function = *model->proto().add_functions();
  function.set_name(name);
  function.set_domain("own");
  for (const std::string& input : inputs) function.add_input(input);
  for (const std::string& output : outputs) function.add_output(output);
  function.add_opset_import()->set_version(opset);
  *function.mutable_node() = body.graph().node();
  return function;
}

OnnxBuilder& Call(OnnxBuilder* model, const std::string& name,
                  const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                  const std::vector<onnx::AttributeProto>& attributes = {}) {
  model->Node(name, inputs, outputs, attributes);
  model->graph().mutable_node()->rbegin()->set_domain("own");
  return *model;
}

onnx::AttributeProto Reference(const std::string& name, const std::string& to) {
  onnx::AttributeProto attribute = testing::Attribute(name, onnx::AttributeProto::FLOAT);
  attribute.set_ref_attr_name(to);
  return attribute;
}

TEST(NodeExpansionTest, CallsBecomeNodesWithNamesOfTheirOwn) {
  OnnxBuilder square_plus, twice, model(17);
  square_plus.Node("Mul", {"a", "a"}, {"t"}).Node("Add", {"t", "b"}, {"r"});
  Call(&twice, "square_plus", {"a", "b"}, {"t"});
  Call(&twice, "square_plus", {"t", "b"}, {"r"});
  AddFunction(&model, "square_plus", square_plus, {"a", "b"}, {"r"});
  AddFunction(&model, "twice", twice, {"a", "b"}, {"r"});
  model.Input("x", {2}).Floats("b", {2}, {1, 2});
  Call(&model, "twice", {"x", "b"}, {"t"}).Node("Neg", {"t"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{2, 3}})[0], (Elements{-26, -123}));
  EXPECT_THAT(BuiltText(model, {{2}}), HasSubstr("node_t/node_t/t [2] = "));
}

TEST(NodeExpansionTest, AttributesAreThoseOfTheCallOrTheirDefaults) {
  OnnxBuilder leaky, model(17);
  leaky.Node("LeakyRelu", {"a"}, {"r"}, {Reference("alpha", "slope")});
  AddFunction(&model, "given", leaky, {"a"}, {"r"}).add_attribute("slope");
  *AddFunction(&model, "defaulted", leaky, {"a"}, {"r"}).add_attribute_proto() =
      Float("slope", 0.5f);
  model.Input("x", {1});
  Call(&model, "given", {"x"}, {"g"}, {Float("slope", 0.25f)}).Output("g");
  Call(&model, "given", {"x"}, {"absent"}).Output("absent");
  Call(&model, "defaulted", {"x"}, {"d"}).Output("d");
  Call(&model, "defaulted", {"x"}, {"o"}, {Float("slope", 2)}).Output("o");
  const std::vector<Elements> computed = Computed(model, {{1}}, {{-8}});
  EXPECT_EQ(computed, (std::vector<Elements>{{-2}, {-0.08f}, {-4}, {-16}}));
  Call(&model, "given", {"x"}, {"e"}, {Float("other", 2)});
  EXPECT_THAT(Open(model),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown attribute 'other'")));
}

TEST(NodeExpansionTest, OutputsThatAreInputsAndInputsThatAreLeftOut) {
  OnnxBuilder clip, model(17);
  clip.Node("Clip", {"a", "low", "high"}, {"r"});
  AddFunction(&model, "clip", clip, {"a", "low", "high"}, {"r", "a", "r"});
  model.Input("x", {2}).Floats("one", {}, {1});
  Call(&model, "clip", {"x", "", "one"}, {"y", "same", "again"});
  model.Output("y").Output("same").Output("again");
  EXPECT_EQ(Computed(model, {{2}}, {{-3, 3}}), (std::vector<Elements>{{-3, 1}, {-3, 3}, {-3, 1}}));
}

TEST(NodeExpansionTest, AFunctionHasAnOpsetOfItsOwn) {
  OnnxBuilder sum, model(17);
  sum.Node("ReduceMax", {"a"}, {"r"}, {Ints("axes", {0}), Int("keepdims", 0)});
  AddFunction(&model, "max", sum, {"a"}, {"r"}, 13);
  model.proto().mutable_opset_import(0)->set_version(20);
  model.Input("x", {2, 1});
  Call(&model, "max", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 1}}, {{2, 3}})[0], Elements{3});
}

TEST(NodeExpansionTest, OperatorsComeBeforeFunctionsOfTheirName) {
  OnnxBuilder relu, model(17);
  relu.Node("Neg", {"a"}, {"r"});
  AddFunction(&model, "Relu", relu, {"a"}, {"r"}).set_domain("");
  AddFunction(&model, "Relu", relu, {"a"}, {"r"});
  model.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  Call(&model, "Relu", {"x"}, {"z"}).Output("z");
  EXPECT_EQ(Computed(model, {{1}}, {{2}}), (std::vector<Elements>{{2}, {-2}}));
}

TEST(NodeExpansionTest, RequiredInputsThatACallLeavesOutAreRefused) {
  OnnxBuilder sum, model(17);
  sum.Node("Add", {"a", "b"}, {"r"});
  AddFunction(&model, "f", sum, {"a", "b"}, {"r"});
  model.Input("x", {1});
  Call(&model, "f", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Open(model), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("(Add of"), HasSubstr("input 1 is missing"))));
}

TEST(NodeExpansionTest, NodesOfAnyNumberOfInputsNeedThemAll) {
  for (const char* op : {"Concat", "Einsum", "Max", "Mean", "Min", "Sum"}) {
    OnnxBuilder model(17);
    model.Input("x", {1}).Node(op, {"x", ""}, {"y"}).Output("y");
    EXPECT_THAT(Open(model),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input 1 is missing")))
        << op;
  }
}

TEST(NodeExpansionTest, HostileFunctions) {
  OnnxBuilder to_b, to_a, model(17);
  Call(&to_b, "b", {"v"}, {"r"});
  Call(&to_a, "a", {"v"}, {"r"});
  AddFunction(&model, "a", to_b, {"v"}, {"r"});
  AddFunction(&model, "b", to_a, {"v"}, {"r"});
  model.Input("x", {1});
  Call(&model, "a", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Open(model), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("a function that calls itself")));

  OnnxBuilder doubling(17);
  for (int level = 0; level < 40; ++level) {
    OnnxBuilder body;
    const std::string next = "f" + std::to_string(level + 1);
    Call(&body, next, {"v"}, {"t"});
    Call(&body, next, {"t"}, {"r"});
    AddFunction(&doubling, "f" + std::to_string(level), body, {"v"}, {"r"});
  }
  AddFunction(&doubling, "f40", OnnxBuilder().Node("Neg", {"v"}, {"r"}), {"v"}, {"r"});
  doubling.Input("x", {1});
  Call(&doubling, "f0", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Open(doubling),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("functions of more than")));

  OnnxBuilder deep(17);
  for (int level = 0; level < 100; ++level) {
    OnnxBuilder body;
    Call(&body, "f" + std::to_string(level + 1), {"v"}, {"r"});
    AddFunction(&deep, "f" + std::to_string(level), body, {"v"}, {"r"});
  }
  deep.Input("x", {1});
  Call(&deep, "f0", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Open(deep), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("functions in more than 64 others")));

  OnnxBuilder long_names(17);
  OnnxBuilder negations;
  for (int i = 0; i < 1000; ++i) negations.Node("Neg", {"v"}, {"r" + std::to_string(i)});
  AddFunction(&long_names, "many", negations, {"v"}, {"r0"});
  long_names.Input("x", {1});
  Call(&long_names, "many", {"x"}, {"y"}).Output("y");
  long_names.graph().mutable_node(0)->set_name(std::string(1 << 20, 'n'));
  EXPECT_THAT(Open(long_names),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many bytes of names")));

  OnnxBuilder nothing(17);
  AddFunction(&nothing, "empty", OnnxBuilder(), {"v"}, {"r"});
  nothing.Input("x", {1});
  Call(&nothing, "empty", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(Open(nothing), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("does not compute its output 'r'")));
}

}  // namespace
}  // namespace tilewire::reader
