// SPDX-License-Identifier: Apache-2.0
//
// Graphs in attributes (engine/onnx/ops/control/control_flow.cc): which is chosen, how often it
// runs, and what it sees.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

OnnxBuilder Branch(const std::string& op) {
  OnnxBuilder branch;
  branch.Node(op, {"x"}, {"t"}).Output("t");
  return branch;
}

// y is x with its sign changed where x has one row, else |x|.
OnnxBuilder ByRows() {
  OnnxBuilder model;
  model.Input("x", {-1, 2}).Integers("first", {0}).Integers("one", {1});
  model.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "first"}, {"n"});
  model.Node("Equal", {"n", "one"}, {"single"});
  model.Node("If", {"single"}, {"y"},
             {Graph("then_branch", Branch("Neg")), Graph("else_branch", Branch("Abs"))});
  return model.Output("y");
}

TEST(ControlFlowTest, TheShapeDecides) {
  EXPECT_EQ(Computed(ByRows(), {{1, 2}}, {{3, -4}})[0], (Elements{-3, 4}));
  EXPECT_EQ(Computed(ByRows(), {{2, 2}}, {{3, -4, 5, -6}})[0], (Elements{3, 4, 5, 6}));
}

TEST(ControlFlowTest, BranchesHoldConstantsAndBranches) {
  OnnxBuilder inner;
  inner.Floats("c", {2}, {10, 20}).Node("Add", {"z", "c"}, {"t"}).Output("t");
  OnnxBuilder outer;
  outer.Tensor("no", {}, onnx::TensorProto::BOOL)->add_int32_data(0);
  outer.Floats("c", {2}, {1, 2}).Node("Mul", {"x", "c"}, {"z"});
  outer.Node("If", {"no"}, {"t"},
             {Graph("then_branch", Branch("Unheard")), Graph("else_branch", inner)});
  outer.Output("t");
  OnnxBuilder model;
  model.Tensor("yes", {1}, onnx::TensorProto::BOOL)->add_int32_data(1);
  model.Input("x", {2});
  model.Node("If", {"yes"}, {"y"}, {Graph("then_branch", outer), Graph("else_branch", outer)});
  model.Output("y");
  EXPECT_THAT(BuiltText(model, {{2}}), HasSubstr("Unheard"));  // both branches must be supported
  outer.graph().mutable_node(1)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type(
      "Neg");
  for (onnx::AttributeProto& branch : *model.graph().mutable_node(0)->mutable_attribute())
    *branch.mutable_g() = outer.graph();
  EXPECT_EQ(Computed(model, {{2}}, {{3, 4}})[0], (Elements{13, 28}));
}

// state' = state * x, and the states of all runs, in `runs` runs.
OnnxBuilder Powers(OnnxBuilder body, int64_t runs) {
  OnnxBuilder model;
  model.Input("x", {2}).Floats("ones", {2}, {1, 1}).Integers("runs", {runs});
  model.Node("Loop", {"runs", "", "ones"}, {"y", "all"}, {Graph("body", std::move(body))});
  return model.Output("y").Output("all");
}

OnnxBuilder PowersBody() {
  OnnxBuilder body;
  body.Input("i", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("state", {2}).Node("Mul", {"state", "x"}, {"next"});
  body.Node("Identity", {"go"}, {"goes_on"}).Node("Identity", {"next"}, {"row"});
  return body.Output("goes_on", onnx::TensorProto::BOOL).Output("next").Output("row");
}

TEST(ControlFlowTest, LoopsRunAsOftenAsIsKnown) {
  const std::vector<Elements> computed = Computed(Powers(PowersBody(), 3), {{2}}, {{2, 3}});
  EXPECT_EQ(computed[0], (Elements{8, 27}));
  EXPECT_EQ(computed[1], (Elements{2, 3, 4, 9, 8, 27}));
}

// Adds the number of each run, held in a constant of the body, and ends after the run of number 2.
TEST(ControlFlowTest, ALoopEndsByItsConditionAndCounts) {
  OnnxBuilder body;
  body.Input("i", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("state", {2}).Integers("two", {2});
  body.Node("Cast", {"i"}, {"f"}, {Int("to", onnx::TensorProto::FLOAT)});
  body.Node("Add", {"state", "f"}, {"next"}).Node("Less", {"i", "two"}, {"goes_on"});
  body.Output("goes_on", onnx::TensorProto::BOOL).Output("next");
  OnnxBuilder model;
  model.Input("x", {2}).Tensor("yes", {}, onnx::TensorProto::BOOL)->add_int32_data(1);
  model.Node("Loop", {"", "yes", "x"}, {"y"}, {Graph("body", body)}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{10, 20}})[0], (Elements{13, 23}));
}

TEST(ControlFlowTest, ALoopInALoop) {
  OnnxBuilder inner = PowersBody();
  inner.graph().mutable_output()->RemoveLast();
  OnnxBuilder outer;
  outer.Input("i", {}, onnx::TensorProto::INT64).Input("go2", {}, onnx::TensorProto::BOOL);
  outer.Input("outer_state", {2}).Integers("twice", {2});
  outer.Node("Loop", {"twice", "", "outer_state"}, {"next2"}, {Graph("body", inner)});
  outer.Node("Neg", {"next2"}, {"negative"});
  outer.Output("go2", onnx::TensorProto::BOOL).Output("negative").Output("next2");
  EXPECT_EQ(Computed(Powers(outer, 2), {{2}}, {{2, 3}})[1], (Elements{4, 9, -16, -81}));
}

// Loops of too many nodes, or over too many constants, are not unrolled (cut.h).
TEST(ControlFlowTest, LoopsThatAreTooLongAreRunInStages) {
  const auto runs_in_stages = [](const OnnxBuilder& model) {
    const std::string path = TemporaryPath("loop.onnx");
    testing::WriteFile(path, model.Serialize());
    const auto opened = OnnxModel::Open(path);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() && (*opened)->has_cuts();
  };
  EXPECT_FALSE(runs_in_stages(Powers(PowersBody(), 100)));
  EXPECT_TRUE(runs_in_stages(Powers(PowersBody(), int64_t{1} << 60)));
  OnnxBuilder grows = PowersBody();  // 2^20 constants, first known at load, then of each run
  grows.Integers("many", {1 << 20}).Node("ConstantOfShape", {"many"}, {"zeros"});
  grows.Node("Neg", {"zeros"}, {"negative"});
  EXPECT_FALSE(runs_in_stages(Powers(grows, 1000)));
  grows.Node("Cast", {"i"}, {"f"}, {Int("to", onnx::TensorProto::FLOAT)});
  grows.Node("Add", {"zeros", "f"}, {"sums"});
  EXPECT_TRUE(runs_in_stages(Powers(grows, 1000)));
  EXPECT_TRUE(runs_in_stages(Powers(PowersBody(), 0)));  // the size of what it would gather
}

TEST(ControlFlowTest, WhatDoesNotFitIsRefused) {
  OnnxBuilder body = PowersBody();
  body.graph().mutable_input()->RemoveLast();
  EXPECT_THAT(Open(Powers(body, 2)), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                       HasSubstr("'state' is defined nowhere")));
  OnnxBuilder counts;
  counts.Input("i", {}, onnx::TensorProto::INT64).Node("Neg", {"x"}, {"n"}).Output("n");
  EXPECT_THAT(Open(Powers(counts, 2)), testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                                         HasSubstr("a body with 1 inputs")));
}

TEST(ControlFlowTest, AnInputMayNeedWhatAGraphCaptures) {
  OnnxBuilder model;  // the node stands before the one that computes what its branch reads
  model.Tensor("yes", {1}, onnx::TensorProto::BOOL)->add_int32_data(1);
  model.Input("z", {2}).Node(
      "If", {"yes"}, {"y"},
      {Graph("then_branch", Branch("Neg")), Graph("else_branch", Branch("Abs"))});
  model.Node("Abs", {"z"}, {"x"}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{-3, 4}})[0], (Elements{-3, -4}));
}

}  // namespace
}  // namespace tilewire::reader
