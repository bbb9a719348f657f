// SPDX-License-Identifier: Apache-2.0
//
// Sequences of known length (engine/onnx/ops/control/sequence.cc): which tensors come out, in loops
// too, and what is refused.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// y is what SequenceAt takes at `position` of [a, b, c], changed by the node.
Elements At(int64_t position, const std::string& op, std::vector<std::string> inputs) {
  OnnxBuilder model(13);
  model.Input("a", {1}).Input("b", {1}).Input("c", {1});
  for (const auto& [name, value] :
       {std::pair("first", 0), {"last", -1}, {"end", 3}, {"position", static_cast<int>(position)}})
    model.Tensor(name, {}, onnx::TensorProto::INT64)->add_int64_data(value);
  model.Node("SequenceConstruct", {"a", "b", "c"}, {"s"}).Node(op, inputs, {"t"});
  model.Node("SequenceAt", {"t", "position"}, {"y"}).Output("y");
  const auto computed = Computed(model, {{1}, {1}, {1}}, {{1}, {2}, {3}});
  return computed.empty() ? Elements() : computed[0];
}

TEST(SequenceTest, TensorsAreAddedAndTakenAway) {
  EXPECT_EQ(At(-1, "Identity", {"s"}), (Elements{3}));
  EXPECT_EQ(At(-1, "SequenceErase", {"s"}), (Elements{2}));
  EXPECT_EQ(At(0, "SequenceErase", {"s", "first"}), (Elements{2}));
  EXPECT_EQ(At(3, "SequenceInsert", {"s", "b"}), (Elements{2}));
  EXPECT_EQ(At(3, "SequenceInsert", {"s", "b", "end"}), (Elements{2}));
  EXPECT_EQ(At(2, "SequenceInsert", {"s", "b", "last"}), (Elements{2}));
  EXPECT_EQ(At(0, "SequenceInsert", {"s", "b", "first"}), (Elements{2}));
}

TEST(SequenceTest, LengthsAreKnown) {
  OnnxBuilder model(13);
  model.Input("x", {5, 2}).Node("SequenceEmpty", {}, {"none"}).Integers("sizes", {2, 3});
  model.Node("SequenceLength", {"none"}, {"n"}).Node("SplitToSequence", {"x"}, {"rows"});
  model.Node("SplitToSequence", {"x", "sizes"}, {"parts"});
  model.Node("SequenceLength", {"rows"}, {"m"}).Node("SequenceLength", {"parts"}, {"k"});
  for (const char* name : {"n", "m", "k"}) model.Output(name, onnx::TensorProto::INT64);
  const std::vector<Elements> lengths = {{0}, {5}, {2}};
  EXPECT_EQ(Computed(model, {{5, 2}}, {Elements(10, 1)}), lengths);
}

// A loop that puts every second element of x into a sequence.
OnnxBuilder Gathered(const char* count) {
  OnnxBuilder body(13), model(13);
  body.Input("i", {}, onnx::TensorProto::INT64).Input("going", {}, onnx::TensorProto::BOOL);
  body.graph().add_input()->set_name("before");
  body.Node("Add", {"i", "i"}, {"at"}).Node("Gather", {"x", "at"}, {"one"});
  body.Node("SequenceInsert", {"before", "one"}, {"after"}).Node("Identity", {"going"}, {"goes"});
  body.Output("goes", onnx::TensorProto::BOOL).Output("after");
  model.Input("x", {6});
  model.Tensor("known", {}, onnx::TensorProto::INT64)->add_int64_data(3);
  model.Node("ReduceSum", {"x"}, {"sum"}, {Int("keepdims", 0)}).Node("SequenceEmpty", {}, {"none"});
  model.Node("Cast", {"sum"}, {"computed"}, {Int("to", onnx::TensorProto::INT64)});
  model.Node("Loop", {count, "", "none"}, {"all"}, {Graph("body", body)});
  model.Node("ConcatFromSequence", {"all"}, {"y"}, {Int("axis", 0), Int("new_axis", 1)});
  return model.Output("y");
}

TEST(SequenceTest, LoopsOfKnownCountCarryThem) {
  EXPECT_EQ(Computed(Gathered("known"), {{6}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{1, 3, 5}}));
  EXPECT_THAT(Open(Gathered("computed")), testing::StatusIs(absl::StatusCode::kUnimplemented, ""));
}

TEST(SequenceTest, Refusals) {
  ExpectInvalid({
      {"a tensor as a sequence", "SequenceLength", {"x"}, {}, "input 0 is not a sequence"},
      {"no parts", "SplitToSequence", {"x", "shape"}, {}, "a part of 7 in [1,4,8,8]"},
  });
  const auto refused = [](const std::string& op, std::vector<std::string> inputs) {
    OnnxBuilder model(13);
    model.Input("x", {2}).Integers("far", {4}).Node("SequenceConstruct", {"x"}, {"s"});
    model.Node(op, inputs, {"y"}, {}).Output("y");
    return BuiltText(model, {{2}});
  };
  EXPECT_THAT(refused("Relu", {"s"}), HasSubstr("input 0 is a sequence of tensors"));
  EXPECT_THAT(refused("Add", {"x", "s"}), HasSubstr("input 1 is a sequence of tensors"));
  EXPECT_THAT(refused("SequenceInsert", {"s", "s"}), HasSubstr("input 1 is a sequence"));
  EXPECT_THAT(refused("SequenceAt", {"s", "far"}), HasSubstr("outside a dimension of 1"));
  EXPECT_THAT(refused("ConcatFromSequence", {"s"}), HasSubstr("attribute 'axis' is missing"));
  EXPECT_THAT(refused("Identity", {"s"}), HasSubstr("output 'y'"));
}

}  // namespace
}  // namespace tilewire::reader
