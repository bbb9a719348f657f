// SPDX-License-Identifier: Apache-2.0
//
// Windows and the matrix of the mel scale (engine/onnx/ops/signal/signal.cc) against what numpy
// computes.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// The node's result, plus an input that is 0.
Elements Known(const std::string& op, const std::vector<std::string>& inputs, const Dims& dims,
               const std::vector<onnx::AttributeProto>& attributes = {}) {
  OnnxBuilder model(17);
  model.Input("x", {dims.begin(), dims.end()});
  model.Integers("one", {1}).Integers("three", {3}).Integers("four", {4}).Integers("five", {5});
  model.Integers("length", {16}).Integers("rate", {8192});
  model.Floats("low", {1}, {0}).Floats("high", {1}, {4000});
  model.Node(op, inputs, {"known"}, attributes).Node("Add", {"x", "known"}, {"y"}).Output("y");
  return Computed(model, {dims}, {Elements(*ElementCount(dims), 0)})[0];
}

TEST(SignalTest, Windows) {
  ExpectNear(Known("HannWindow", {"five"}, {5}), {0, 0.345492, 0.904508, 0.904508, 0.345492});
  ExpectNear(Known("HammingWindow", {"four"}, {4}, {Int("periodic", 0)}),
             {0.0869565, 0.771739, 0.771739, 0.0869565});
  ExpectNear(
      Known("BlackmanWindow", {"five"}, {5}, {Int("periodic", 0), Int("output_datatype", 11)}),
      {0, 0.34, 1, 0.34, 0});
  ExpectNear(Known("HannWindow", {"one"}, {1}, {Int("periodic", 0)}), {1});
}

TEST(SignalTest, TrianglesOfTheMelScale) {
  ExpectNear(
      Known("MelWeightMatrix", {"three", "length", "rate", "low", "high"}, {9, 3}),
      {1, 0, 0, 0, 1, 0, 0, 0.5, 0.5, 0, 0, 1, 0, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST(SignalTest, Refusals) {
  ExpectInvalid({{"two sizes", "HannWindow", {"two"}, {}, "", 17}});
  ExpectUnimplemented({{"integers",
                        "HannWindow",
                        {"shape"},
                        {Int("output_datatype", 6)},
                        "output_datatype INT32",
                        17}});
}

}  // namespace
}  // namespace tilewire::reader
