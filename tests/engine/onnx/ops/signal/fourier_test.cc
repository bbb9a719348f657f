// SPDX-License-Identifier: Apache-2.0
//
// DFT and STFT (engine/onnx/ops/signal/fourier.cc) against what numpy computes. Element i of the
// signal is sin(i).
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

Elements Wave(const Dims& dims) {
  Elements elements(*ElementCount(dims));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = std::sin(static_cast<double>(i));
  return elements;
}

// A node on the signal x and constants of their names; `axis` is 2.
struct SignalCase {
  const char* why;
  int64_t opset;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  Dims signal;
  Elements expected;
};

void ExpectTransformed(const std::vector<SignalCase>& cases) {
  for (const SignalCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(c.opset);
    model.Input("x", {c.signal.begin(), c.signal.end()});
    model.Integers("three", {3}).Integers("seven", {7}).Integers("axis", {2});
    model.Integers("two", {2}).Integers("four", {4}).Floats("window", {4}, {0.5f, 1, 0.5f, 0.25f});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    ExpectNear(Computed(model, {c.signal}, {Wave(c.signal)})[0], c.expected);
  }
}

TEST(FourierTest, RealNumbers) {
  ExpectTransformed(
      {{"all results", 17, "DFT", {"x"}, {}, {2, 5, 1}, {1.13509,   0,         -0.823642,
                                                         -1.97157,  0.256099,  -0.208861,
                                                         0.256099,  0.208861,  -0.823642,
                                                         1.97157,   0.820124,  0,
                                                         -2.24984,  0.853051,  -0.557535,
                                                         0.0903693, -0.557535, -0.0903693,
                                                         -2.24984,  -0.853051}},
       {"those that differ",
        20,
        "DFT",
        {"x"},
        {Int("onesided", 1)},
        {2, 5, 1},
        {1.13509, 0, -0.823642, -1.97157, 0.256099, -0.208861, 0.820124, 0, -2.24984, 0.853051,
         -0.557535, 0.0903693}},
       {"fewer samples",
        20,
        "DFT",
        {"x", "three"},
        {},
        {2, 5, 1},
        {1.75077, 0, -0.875384, 0.0587394, -0.875384, -0.0587394, -0.581353, 0, -1.14771, 0.810948,
         -1.14771, -0.810948}},
       {"zeros after the samples",
        17,
        "DFT",
        {"x", "seven"},
        {Int("onesided", 1)},
        {2, 5, 1},
        {1.13509, 0, 0.877022, -1.93398, -1.39037, 0.27618, -0.0541992, -0.529593, 0.820124, 0,
         -2.54202, -0.672514, -0.614866, 1.00877, -0.609413, 0.0721195}}});
}

TEST(FourierTest, ComplexNumbersAlongAnyAxis) {
  const Elements inverse = {0.0775186,  0.0982217, 0.0286203, -0.0672945, 0.357027, -0.132449,
                            -0.0379894, 0.180592,  -0.434545, 0.875698,   0.918667, 0.0278222,
                            0.0294897,  0.0984751, 0.0769229, -0.0153518, 0.236022, -0.185809,
                            0.169294,   0.118584,  -0.802085, 0.507501,   0.744391, 0.547056};
  const Elements along_2 = {0.909297,  0.982591, -0.909297, 0.700351,    -1.03622, -0.301938,
                            -0.477387, -1.61591, 0.445337,  -0.587872,   1.53338,  1.41211,
                            0.454034,  1.07045,  -1.52718,  -0.230121,   -1.03889, -0.81152,
                            0.463084,  -1.11127, 0.904094,  -0.00956477, 0.921797, 1.68288};
  ExpectTransformed(
      {{"back, along axis 1", 17, "DFT", {"x"}, {Int("inverse", 1)}, {2, 3, 2, 2}, inverse},
       {"axis as an attribute", 17, "DFT", {"x"}, {Int("axis", 2)}, {2, 3, 2, 2}, along_2},
       {"axis as an input", 20, "DFT", {"x", "", "axis"}, {}, {2, 3, 2, 2}, along_2},
       {"the usual axis", 20, "DFT", {"x"}, {}, {2, 3, 2, 2}, along_2}});
}

TEST(FourierTest, Frames) {
  const Elements real = {1.89189,   0, -0.909297, -0.700351, -0.0732936, 0, -0.909297, 0.700351,
                         -0.665309, 0, 1.6661,    -1.10004,  0.970299,   0, 1.6661,    1.10004,
                         -1.33816,  0, -0.477387, 1.61591,   -0.73428,   0, -0.477387, -1.61591};
  const Elements complex = {-0.126921, 0.680653,  0.240936,  0.611682,  -1.38668,   -0.91556,
                            1.27267,   2.98911,   -0.590881, -0.889809, -0.0891839, -1.63565,
                            1.05599,   -0.203802, -3.40314,  -1.10644};
  const Elements windowed = {1.3314,     0, -0.454649, -0.806191, -0.422102, 0,
                             -0.0223636, 0, 0.83305,   -0.380851, 0.174859,  0,
                             -1.31279,   0, -0.238693, 1.12317,   0.276569,  0};
  const std::vector<std::string> of_four = {"x", "two", "", "four"};
  const std::vector<onnx::AttributeProto> all = {Int("onesided", 0)};
  ExpectTransformed({{"a window", 17, "STFT", {"x", "two", "window"}, {}, {1, 8, 1}, windowed},
                     {"without one, all results", 17, "STFT", of_four, all, {1, 8, 1}, real},
                     {"complex numbers", 17, "STFT", of_four, all, {1, 6, 2}, complex}});
}

// The same numbers as with a window in the file.
TEST(FourierTest, AWindowOfTheRequest) {
  OnnxBuilder model(17);
  model.Input("x", {1, 8, 1}).Input("w", {4}).Integers("two", {2});
  model.Node("STFT", {"x", "two", "w"}, {"y"}).Output("y");
  ExpectNear(Computed(model, {{1, 8, 1}, {4}}, {Wave({1, 8, 1}), {0.5, 1, 0.5, 0.25}})[0],
             {1.3314, 0, -0.454649, -0.806191, -0.422102, 0, -0.0223636, 0, 0.83305, -0.380851,
              0.174859, 0, -1.31279, 0, -0.238693, 1.12317, 0.276569, 0});
}

// The first three results of six samples say what the others are.
TEST(FourierTest, BackFromOneSide) {
  OnnxBuilder model(20);
  model.Input("x", {1, 6, 1}).Node("DFT", {"x"}, {"half"}, {Int("onesided", 1)});
  model.Node("DFT", {"half"}, {"y"}, {Int("inverse", 1), Int("onesided", 1)}).Output("y");
  ExpectNear(Computed(model, {{1, 6, 1}}, {Wave({1, 6, 1})})[0], Wave({1, 6, 1}));
}

TEST(FourierTest, Refusals) {
  ExpectInvalid({{"three parts", "DFT", {"m"}, {}, "neither of real", 20}});
  OnnxBuilder model(17);
  model.Input("x", {1, 4, 2}).Node("DFT", {"x"}, {"y"}, {Int("inverse", 1), Int("onesided", 1)});
  EXPECT_THAT(Built(model.Output("y"), {{1, 4, 2}}).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "from opset 20 on"));
  OnnxBuilder frames(17);
  frames.Input("x", {1, 4, 1}).Integers("two", {2}).Integers("five", {5});
  frames.Node("STFT", {"x", "two", "", "five"}, {"y"});
  EXPECT_THAT(Built(frames.Output("y"), {{1, 4, 1}}).status(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, "frames of 5 of 4 samples"));
  OnnxBuilder many(17);
  many.Input("x", {1, 1 << 21, 1})
      .Integers("one", {1})
      .Node("STFT", {"x", "one", "", "one"}, {"y"});
  EXPECT_THAT(Built(many.Output("y"), {{1, 1 << 21, 1}}).status(),
              testing::StatusIs(absl::StatusCode::kUnimplemented, "2097152 frames"));
}

}  // namespace
}  // namespace tilewire::reader
