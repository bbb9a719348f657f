// SPDX-License-Identifier: Apache-2.0
//
// Attention and RotaryEmbedding (engine/onnx/ops/attention/attention.cc) against what numpy
// computes. Element i of the tensor that starts at s is sin(s + i).
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

Elements Sines(const Dims& dims, int start) {
  Elements elements(*ElementCount(dims));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = std::sin(static_cast<double>(start) + static_cast<double>(i));
  return elements;
}

struct Given {
  std::string name;
  Dims dims;
  int start;
};

// The outputs of the node `op` for inputs "" or those of `given`.
Elements Node(const std::string& op, const std::vector<Given>& given,
              const std::vector<onnx::AttributeProto>& attributes,
              const std::function<void(OnnxBuilder*)>& add = nullptr,
              std::vector<std::string> inputs = {}) {
  OnnxBuilder model(23);
  std::vector<Dims> dims;
  std::vector<Elements> elements;
  for (const Given& one : given) {
    model.Input(one.name, {one.dims.begin(), one.dims.end()});
    dims.push_back(one.dims);
    elements.push_back(Sines(one.dims, one.start));
    if (add == nullptr) inputs.push_back(one.name);
  }
  if (add != nullptr) add(&model);
  model.Node(op, inputs, {"y"}, attributes).Output("y");
  return Computed(model, dims, elements)[0];
}

const std::vector<Given> kHeads = {
    {"q", {1, 2, 2, 2}, 0}, {"k", {1, 2, 3, 2}, 10}, {"v", {1, 2, 3, 2}, 20}};

std::vector<Given> With(std::vector<Given> given, const std::vector<Given>& more) {
  given.insert(given.end(), more.begin(), more.end());
  return given;
}

TEST(AttentionTest, SharesOfValues) {
  ExpectNear(Node("Attention", kHeads, {}), {-0.254302, -0.247877, -0.368637, -0.105567, 0.439248,
                                             0.280564, -0.115315, -0.214188});
  ExpectNear(Node("Attention", kHeads, {Float("scale", 2)}),
             {-0.490951, -0.376087, -0.794057, -0.136263, 0.660775, 0.63929, -0.257268, -0.411352});
  ExpectNear(
      Node("Attention", kHeads, {Float("softcap", 0.5f)}),
      {-0.200179, -0.210977, -0.257968, -0.0883444, 0.272463, 0.114157, -0.101132, -0.19469});
  ExpectNear(
      Node("Attention", With(kHeads, {{"m", {2, 3}, 30}}), {}),
      {-0.589925, -0.246484, 0.088607, 0.0501619, 0.121087, -0.0192479, 0.248729, 0.00743096});
}

TEST(AttentionTest, WhatIsMaskedTakesNoPart) {
  ExpectNear(Node("Attention", kHeads, {},
                  [](OnnxBuilder* model) {
                    onnx::TensorProto* mask = model->Tensor("m", {2, 3}, onnx::TensorProto::BOOL);
                    for (int truth : {1, 0, 1, 0, 1, 1}) mask->add_int32_data(truth);
                  },
                  {"q", "k", "v", "m"}),
             {-0.410015, 0.131711, -0.665273, -0.323654, 0.527118, 0.773411, -0.355509, -0.534466});
  const Elements causal =
      Node("Attention", {{"q", {1, 1, 2, 2}, 0}, {"k", {1, 1, 2, 2}, 10}, {"v", {1, 1, 2, 2}, 20}},
           {Int("is_causal", 1)});
  ExpectNear({causal[0], causal[1]}, {std::sin(20), std::sin(21)});
  EXPECT_GT(std::abs(causal[2] - std::sin(22)), 0.01);
}

TEST(AttentionTest, AMaskIsBroadcastToScoresAndNotTheOtherWay) {
  const auto built = [](const std::vector<int64_t>& mask) {
    OnnxBuilder model(23);
    for (const char* name : {"q", "k", "v"}) model.Input(name, {1, 2, 2, 2});
    model.Floats("m", mask).Node("Attention", {"q", "k", "v", "m"}, {"y"}).Output("y");
    return BuiltText(model, {{1, 2, 2, 2}, {1, 2, 2, 2}, {1, 2, 2, 2}});
  };
  EXPECT_THAT(built({1, 1, 2, 2}), HasSubstr("output y"));
  EXPECT_THAT(built({3, 1, 2, 2}),
              HasSubstr("attn_mask of dims [3,1,2,2] for scores of [1,2,2,2]"));
}

TEST(AttentionTest, FewerHeadsOfKeys) {
  ExpectNear(Node("Attention",
                  {{"q", {1, 2, 2, 2}, 0}, {"k", {1, 1, 3, 2}, 10}, {"v", {1, 1, 3, 2}, 20}}, {}),
             {-0.254302, -0.247877, -0.368637, -0.105567, 0.511495, 0.325392, -0.12024, -0.222996});
}

TEST(AttentionTest, HeadsOneAfterTheOther) {
  ExpectNear(Node("Attention", {{"q", {1, 2, 4}, 0}, {"k", {1, 3, 4}, 10}, {"v", {1, 3, 4}, 20}},
                  {Int("q_num_heads", 2), Int("kv_num_heads", 2)}),
             {-0.171207, -0.147227, -0.395102, -0.20091, 0.556554, 0.288471, -0.2185, -0.30475});
}

TEST(AttentionTest, PastKeysComeFirst) {
  OnnxBuilder model(23);
  model.Input("q", {1, 2, 2, 2}).Input("k", {1, 2, 3, 2}).Input("v", {1, 2, 3, 2});
  model.Input("pk", {1, 2, 1, 2}).Input("pv", {1, 2, 1, 2});
  model.Node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "nk", "nv"});
  model.Output("y").Output("nk");
  const std::vector<Elements> computed =
      Computed(model, {{1, 2, 2, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, {1, 2, 1, 2}, {1, 2, 1, 2}},
               {Sines({8}, 0), Sines({12}, 10), Sines({12}, 20), Sines({4}, 40), Sines({4}, 50)});
  ExpectNear(computed[0],
             {-0.256043, -0.049816, -0.334747, 0.141855, 0.670059, 0.329208, 0.110914, -0.0889321});
  ASSERT_EQ(computed[1].size(), 16);
  ExpectNear({computed[1][0], computed[1][2], computed[1][8]},
             {std::sin(40), std::sin(10), std::sin(42)});
}

TEST(AttentionTest, RotatedPairs) {
  const std::vector<Given> three = {
      {"x", {1, 2, 8}, 0}, {"c", {1, 2, 2}, 60}, {"s", {1, 2, 2}, 70}};
  ExpectNear(Node("RotaryEmbedding", three, {Int("num_heads", 2)}),
             {-0.703697, -0.947173, -0.277164, 0.663946, 0.446918, 0.301604, -0.500514, -1.54672,
              -0.593229, -0.607795, 0.653252, -0.446264, 0.145185, 0.510414, -0.868433, -0.175528});
  ExpectNear(Node("RotaryEmbedding", three, {Int("num_heads", 2), Int("interleaved", 1)}),
             {-0.651207, -0.256489, -1.0127, 0.728453, 0.972784, -0.293392, -0.354882, -0.900466,
              -0.83592, -0.0535078, -0.76781, 0.200824, 0.289976, -0.446774, 0.60588, -0.561586});
  ExpectNear(Node("RotaryEmbedding", {{"x", {1, 2, 2, 4}, 0}, {"c", {3, 1}, 60}, {"s", {3, 1}, 70}},
                  {Int("rotary_embedding_dim", 2)},
                  [](OnnxBuilder* model) {
                    const int64_t positions[] = {2, 0};
                    model->Tensor("p", {1, 2}, onnx::TensorProto::INT64)
                        ->set_raw_data(positions, sizeof(positions));
                  },
                  {"x", "c", "s", "p"}),
             {-0.213585, -0.621999, 0.909297, 0.14112, 0.972784, -0.293392, -0.279415, 0.656987,
              -0.83592, -0.0535078, -0.544021, -0.99999, -0.16161, -0.54332, 0.990607, 0.650288});
}

TEST(AttentionTest, Refusals) {
  ExpectUnimplemented({
      {"capped and masked",
       "Attention",
       {"x", "x", "x"},
       {Float("softcap", 1), Int("is_causal", 1)},
       "softcap with a mask",
       23},
      {"causal after the past",
       "Attention",
       {"x", "x", "x", "", "x", "x"},
       {Int("is_causal", 1)},
       "is_causal with past keys",
       23},
      {"in f64", "Attention", {"x", "x", "x"}, {Int("softmax_precision", 11)}, "precision 11", 23},
  });
  ExpectInvalid({
      {"heads that do not fit",
       "Attention",
       {"z", "z", "z"},
       {Int("q_num_heads", 2)},
       "2 heads in a tensor of dims [2,2,3]",
       23},
      {"no rank for heads", "RotaryEmbedding", {"z", "m", "m"}, {}, "num_heads 0", 23},
  });
}

}  // namespace
}  // namespace tilewire::reader
