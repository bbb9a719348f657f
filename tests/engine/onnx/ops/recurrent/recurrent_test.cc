// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and RNN (engine/onnx/ops/recurrent/recurrent.cc) against what numpy computes by ONNX's
// formulas, which agree with torch's layers. Element i of the tensor that starts at s is sin(s +
// i).
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

using testing::Strings;
using Attributes = std::vector<onnx::AttributeProto>;

// Two steps of inputs in most cases; of the inputs that may be left out, those that are given.
struct Layer {
  std::string op;
  int64_t steps, sequences, inputs, states, directions;
  Attributes attributes;
  std::vector<int> given;  // the numbers of inputs after R
  std::vector<int64_t> lengths = {};
  bool batch_first = false;
};

int64_t GatesOf(const std::string& op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

// Input i, as its dims and where its elements start.
std::pair<std::vector<int64_t>, int> InputOf(const Layer& layer, int i) {
  const int64_t gates = GatesOf(layer.op) * layer.states, directions = layer.directions;
  switch (i) {
    case 0:
      return {layer.batch_first ? std::vector<int64_t>{layer.sequences, layer.steps, layer.inputs}
                                : std::vector<int64_t>{layer.steps, layer.sequences, layer.inputs},
              0};
    case 1:
      return {{directions, gates, layer.inputs}, 100};
    case 2:
      return {{directions, gates, layer.states}, 200};
    case 3:
      return {{directions, 2 * gates}, 300};
    case 7:
      return {{directions, 3 * layer.states}, 600};
    default:
      return {layer.batch_first ? std::vector<int64_t>{layer.sequences, directions, layer.states}
                                : std::vector<int64_t>{directions, layer.sequences, layer.states},
              100 * (i - 1)};
  }
}

Elements Sines(const std::vector<int64_t>& dims, int start) {
  Elements elements(*ElementCount({dims.begin(), dims.end()}));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = std::sin(static_cast<double>(start) + static_cast<double>(i));
  return elements;
}

// All outputs of the layer, one after the other; weights are in the file or come with the request.
Elements Outputs(const Layer& layer, bool known) {
  OnnxBuilder model(14);
  std::vector<std::string> names(8);
  std::vector<Dims> dims;
  std::vector<Elements> elements;
  std::vector<int> used = {0, 1, 2};
  used.insert(used.end(), layer.given.begin(), layer.given.end());
  for (int i : used) {
    names[i] = "input" + std::to_string(i);
    const auto [shape, start] = InputOf(layer, i);
    const Elements numbers = Sines(shape, start);
    if (i > 0 && known) {
      model.Floats(names[i], shape, {numbers.begin(), numbers.end()});
      continue;
    }
    model.Input(names[i], shape);
    dims.emplace_back(shape.begin(), shape.end());
    elements.push_back(numbers);
  }
  if (!layer.lengths.empty()) {
    names[4] = "lengths";
    model.Integers("lengths", layer.lengths);
  }
  while (names.back().empty()) names.pop_back();
  std::vector<std::string> outputs = {"y", "h"};
  if (layer.op == "LSTM") outputs.push_back("c");
  model.Node(layer.op, names, outputs, layer.attributes);
  for (const std::string& output : outputs) model.Output(output);
  Elements all;
  for (const Elements& output : Computed(model, dims, elements))
    all.insert(all.end(), output.begin(), output.end());
  return all;
}

void ExpectOutputs(const Layer& layer, const Elements& expected) {
  for (bool known : {true, false}) {
    SCOPED_TRACE(known ? "weights in the file" : "weights of the request");
    ExpectNear(Outputs(layer, known), expected);
  }
}

const onnx::AttributeProto kReverse = String("direction", "reverse");
const onnx::AttributeProto kBoth = String("direction", "bidirectional");

TEST(RecurrentTest, LstmOfDefaults) {
  ExpectOutputs(
      {"LSTM", 2, 1, 2, 2, 1, {Int("hidden_size", 2)}, {3}},
      {-0.184727, 0.325281, -0.274926, 0.376468, -0.274926, 0.376468, -0.464732, 0.723584});
}

// The clip bounds the sums of the gates, not the memory.
TEST(RecurrentTest, LstmWithAllInputs) {
  ExpectOutputs({"LSTM", 2, 2, 1, 1, 2, {kBoth, Float("clip", 0.2f)}, {3, 5, 6, 7}, {1, 2}},
                {-0.138962, -0.281138, -0.11424, 0.105409, 0, -0.11656, 0, 0.119645, -0.138962,
                 -0.11656, -0.11424, 0.105409, -0.319099, -0.264957, -0.246008, 0.238581});
}

TEST(RecurrentTest, LstmWithPeepholes) {
  ExpectOutputs(
      {"LSTM", 2, 1, 1, 2, 1, {}, {3, 6, 7}},
      {-0.324351, -0.0893185, -0.298809, -0.0493395, -0.298809, -0.0493395, -0.338378, -0.0568891});
}

TEST(RecurrentTest, CoupledGatesOfABatchThatComesFirst) {
  ExpectOutputs({"LSTM",
                 2,
                 1,
                 2,
                 1,
                 1,
                 {kReverse, Int("layout", 1), Int("input_forget", 1)},
                 {3, 6},
                 {},
                 true},
                {-0.0444591, -0.226192, -0.0444591, -0.103829});
}

// Numbers of alpha and beta go to the functions that have some.
TEST(RecurrentTest, FunctionsByName) {
  ExpectOutputs({"LSTM",
                 2,
                 1,
                 2,
                 1,
                 1,
                 {Strings("activations", {"HardSigmoid", "ScaledTanh", "Softsign"}),
                  testing::Floats("activation_alpha", {0.3f, 1.5f}),
                  testing::Floats("activation_beta", {0.4f, 0.5f})},
                 {3}},
                {0.0320935, -0.0160557, -0.0160557, -0.0369308});
  ExpectOutputs({"GRU",
                 2,
                 1,
                 1,
                 2,
                 1,
                 {Strings("activations", {"Affine", "elu"}),
                  testing::Floats("activation_alpha", {0.4f, 0.5f}),
                  testing::Floats("activation_beta", {0.3f})},
                 {3}},
                {2.25336, -0.133595, 3.23303, -0.0455804, 3.23303, -0.0455804});
  ExpectOutputs({"RNN",
                 2,
                 2,
                 2,
                 1,
                 2,
                 {kBoth, Strings("activations", {"LeakyRelu", "ThresholdedRelu"}),
                  testing::Floats("activation_alpha", {0.2f, 0.1f})},
                 {3}},
                {-0.235631, -0.391033, 1.90681, 2.2814, -0.280597, -0.155714, 0, 1.51391, -0.280597,
                 -0.155714, 1.90681, 2.2814});
  ExpectOutputs({"RNN",
                 2,
                 1,
                 1,
                 2,
                 1,
                 {Strings("activations", {"Softplus"}), Int("layout", 1)},
                 {3},
                 {},
                 true},
                {0.436142, 0.929793, 0.207268, 2.1514, 0.207268, 2.1514});
}

TEST(RecurrentTest, Gru) {
  ExpectOutputs({"GRU", 2, 2, 1, 2, 1, {kReverse}, {3, 5}, {2, 1}},
                {0.479535, -0.0459652, 0.858997, -0.198641, -0.221358, -0.788652, 0, 0, 0.479535,
                 -0.0459652, 0.858997, -0.198641});
  ExpectOutputs({"GRU",
                 2,
                 2,
                 2,
                 1,
                 2,
                 {kBoth, Int("layout", 1), Int("linear_before_reset", 1)},
                 {3, 5},
                 {},
                 true},
                {-0.833996, -0.159866, -0.748894, 0.170048, 0.378301, 0.501824, 0.137424, 0.385595,
                 -0.748894, -0.159866, 0.137424, 0.501824});
  ExpectOutputs({"GRU", 3, 1, 1, 2, 1, {Int("linear_before_reset", 1)}, {}},
                {0, 0, -0.159835, -0.273368, -0.363393, -0.477139, -0.363393, -0.477139});
}

TEST(RecurrentTest, Rnn) {
  ExpectOutputs(
      {"RNN", 3, 1, 2, 2, 2, {kBoth}, {3}},
      {-0.219791, 0.74073, -0.409813, -0.374833, -0.693336, 0.959093, -0.155562, -0.973969,
       -0.107496, -0.527306, 0.71165, -0.576716, -0.107496, -0.527306, -0.409813, -0.374833});
}

// A first state of zeros and lengths of all steps say nothing; last states that have no reader, and
// outputs that are left out, are not computed.
TEST(RecurrentTest, WhatSaysNothingIsLeftOut) {
  OnnxBuilder model(14);
  model.Input("x", {2, 3, 4}).Floats("w", {1, 20, 4}).Floats("r", {1, 20, 5});
  model.Floats("zeros", {1, 3, 5}, std::vector<float>(15)).Integers("lengths", {2, 2, 2});
  model.Node("LSTM", {"x", "w", "r", "", "lengths", "zeros", "zeros"}, {"y", "h", "c"});
  EXPECT_EQ(BuiltText(model.Output("y"), {{2, 3, 4}}),
            "input x [2,3,4]\n"
            "y/all [2,3,5] = lstm(x) left2right of layer with weights_layer,weights_iter\n"
            "y/y/apart [2,3,1,5] = reshape(y/all)\n"
            "y [2,1,3,5] = transpose(y/y/apart) order=[0,2,1,3]\n"
            "output y\n");
  OnnxBuilder last(14);
  last.Input("x", {2, 3, 4}).Floats("w", {1, 20, 4}).Floats("r", {1, 20, 5});
  last.Node("LSTM", {"x", "w", "r"}, {"", "", "c"}).Output("c");
  EXPECT_THAT(BuiltText(last, {{2, 3, 4}}),
              HasSubstr("c/all [3,3,5] = lstm(x) left2right iter_c of layer with "
                        "weights_layer,weights_iter\n"));
}

TEST(RecurrentTest, NamesWhatIsWrong) {
  const auto refusal = [](const std::string& op, const Attributes& attributes, int64_t opset,
                          const std::vector<int64_t>& r = {1, 5, 5}) {
    OnnxBuilder model(opset);
    model.Input("x", {2, 3, 4}).Floats("w", {1, 5, 4}).Floats("r", r);
    model.Node(op, {"x", "w", "r"}, {"y"}, attributes).Output("y");
    return Built(model, {{2, 3, 4}}).status();
  };
  using testing::StatusIs;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(refusal("RNN", {}, 22).ok());
  EXPECT_THAT(refusal("RNN", {Int("layout", 1)}, 13), StatusIs(kInvalid, "layout 1"));
  EXPECT_THAT(refusal("RNN", {Int("hidden_size", 4)}, 14), StatusIs(kInvalid, "hidden_size 4"));
  EXPECT_THAT(refusal("RNN", {String("direction", "up")}, 14), StatusIs(kInvalid, "direction"));
  EXPECT_THAT(refusal("RNN", {Strings("activations", {"Cosine"})}, 14),
              StatusIs(kInvalid, "Cosine"));
  EXPECT_THAT(refusal("RNN", {Strings("activations", {"Tanh", "Tanh"})}, 14),
              StatusIs(kInvalid, "2 activations"));
  EXPECT_THAT(refusal("RNN", {testing::Floats("activation_alpha", {1})}, 14),
              StatusIs(kInvalid, "activation_alpha"));
  EXPECT_THAT(refusal("RNN", {}, 14, {1, 6, 5}), StatusIs(kInvalid, "input 2"));
  EXPECT_THAT(refusal("LSTM", {}, 14), StatusIs(kInvalid, "input 1"));
}

}  // namespace
}  // namespace tilewire::reader
