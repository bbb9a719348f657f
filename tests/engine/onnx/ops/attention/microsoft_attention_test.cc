// SPDX-License-Identifier: Apache-2.0
//
// Attention as ONNX Runtime writes it (engine/onnx/ops/attention/microsoft_attention.cc): its own
// numbers, masks, keys and values of earlier requests, and what is refused.
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// Element i of a tensor that starts at `start`: its sine.
std::vector<float> Sines(int64_t count, int start) {
  std::vector<float> sines;
  for (int64_t i = 0; i < count; ++i)
    sines.push_back(static_cast<float>(std::sin(start + static_cast<double>(i))));
  return sines;
}

// Inputs q [1,2,4], k and v [1,3,4]; the numbers are those that ONNX Runtime 1.30 gives.
void ExpectAttention(const std::string& op, const std::vector<std::string>& inputs,
                     std::vector<onnx::AttributeProto> attributes, const Elements& expected) {
  SCOPED_TRACE(op);
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("q", {1, 2, 4}).Input("k", {1, 3, 4}).Input("v", {1, 3, 4});
  model.Floats("bias", {12}, Sines(12, 60)).Floats("mask", {1, 2, 2, 3}, Sines(12, 80));
  model.Floats("weights", {4, 12}, Sines(48, 100)).Floats("shared", {1, 1, 2, 3}, Sines(6, 80));
  model.Integers("packed_ends", {2, 0, 2, 0, 3}).Integers("packed_end", {1, 0, 2, 0, 2});
  model.Tensor("nothing", {1, 1}, onnx::TensorProto::INT32)->add_int32_data(0);
  model.Node(op, inputs, {"y"}, attributes).Output("y");
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  const std::vector<float> q = Sines(8, 0), k = Sines(12, 10), v = Sines(12, 20);
  ExpectNear(Computed(model, {{1, 2, 4}, {1, 3, 4}, {1, 3, 4}},
                      {{q.begin(), q.end()}, {k.begin(), k.end()}, {v.begin(), v.end()}})[0],
             expected);
}

TEST(MicrosoftAttentionTest, AttentionAsOnnxRuntime) {
  const onnx::AttributeProto heads = Int("num_heads", 2);
  ExpectAttention(
      "MultiHeadAttention", {"q", "k", "v"}, {heads},
      {-0.171207, -0.147227, -0.395102, -0.20091, 0.556554, 0.288471, -0.2185, -0.30475});
  ExpectAttention(
      "MultiHeadAttention", {"q", "k", "v", "bias", "", "mask"}, {heads, Float("scale", 0.5f)},
      {-0.728668, -0.411562, 0.295421, 0.705258, -0.157772, 0.515348, 0.841576, 0.692544});
  ExpectAttention(
      "MultiHeadAttention", {"q", "k", "v", "", "", "shared"}, {heads},
      {-0.047809, -0.372567, -0.697972, -0.276806, 0.669158, 0.558787, 0.003859, -0.346716});
  ExpectAttention(
      "MultiHeadAttention", {"q", "k", "v", "", "packed_ends"}, {heads},
      {-0.410015, 0.131711, 0.381101, 0.065003, 0.684498, 0.714927, 0.248662, -0.244475});
  ExpectAttention(
      "Attention", {"q", "weights", "bias", "packed_end"}, {heads},
      {-0.430384, 1.581846, 2.139734, 0.730361, -0.430384, 1.581846, 2.139734, 0.730361});
  ExpectAttention("Attention", {"q", "weights", "bias", "nothing"}, {heads},
                  {-0.642811, 1.25154, 0.941617, 2.17432, -0.521559, 1.44008, 2.13688, 0.733797});
  ExpectAttention("Attention", {"q", "weights", "bias"}, {heads},
                  {-0.642811, 1.25154, 0.941617, 2.17432, -0.521559, 1.44008, 2.13688, 0.733797});
  ExpectAttention("Attention", {"q", "weights", "bias"}, {heads, Int("unidirectional", 1)},
                  {-0.430384, 1.58185, 2.13973, 0.730361, -0.521559, 1.44008, 2.13688, 0.733797});
}

// One head of size 1 whose scores are all 0, over values 1, 2, 4, 8: the mean of those that take
// part. Input m is the mask, of so many dims.
Elements MeanOf(const std::vector<int64_t>& mask_dims, const Elements& mask,
                std::vector<onnx::AttributeProto> attributes = {}) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("q", {1, 2, 1}).Input("k", {1, 2, 1}).Input("v", {1, 2, 1});
  model.Input("m", mask_dims, onnx::TensorProto::INT32);
  model.Input("pk", {1, 1, 2, 1}).Input("pv", {1, 1, 2, 1});
  attributes.push_back(Int("num_heads", 1));
  attributes.push_back(Float("mask_filter_value", -1000));
  model.Node("MultiHeadAttention", {"q", "k", "v", "", "m", "", "pk", "pv"}, {"y"}, attributes);
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  model.Output("y");
  const Dims dims(mask_dims.begin(), mask_dims.end());
  return Computed(model, {{1, 2, 1}, {1, 2, 1}, {1, 2, 1}, dims, {1, 1, 2, 1}, {1, 1, 2, 1}},
                  {{0, 0}, {0, 0}, {4, 8}, mask, {0, 0}, {1, 2}})[0];
}

TEST(MicrosoftAttentionTest, MasksOfEarlierAndNewKeys) {
  ExpectNear(MeanOf({1, 4}, {1, 0, 1, 1}), {13.0 / 3, 13.0 / 3});
  ExpectNear(MeanOf({1, 2, 4}, {1, 0, 0, 0, 0, 1, 0, 1}), {1, 5});
  ExpectNear(MeanOf({1}, {3}), {7.0 / 3, 7.0 / 3});
  ExpectNear(MeanOf({2}, {3, 1}), {3, 3});
  ExpectNear(MeanOf({1, 4}, {1, 1, 1, 1}, {Int("unidirectional", 1)}), {7.0 / 3, 15.0 / 4});
}

// Two tokens, of values 4 and 8, after two of values 1 and 2: positions 2 and 3 of five. Rows and
// columns of the mask for other positions are not read.
TEST(MicrosoftAttentionTest, MasksOfAllPositions) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("x", {1, 2, 1}).Input("m", {1, 1, 5, 5}, onnx::TensorProto::INT32);
  model.Floats("w", {1, 3}, {0, 0, 1}).Floats("past", {2, 1, 1, 2, 1}, {0, 0, 1, 2});
  model.Node("Attention", {"x", "w", "", "m", "past"}, {"y"}, {Int("num_heads", 1)}).Output("y");
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  const Elements mask = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1};
  ExpectNear(Computed(model, {{1, 2, 1}, {1, 1, 5, 5}}, {{4, 8}, mask})[0], {1, 5});
}

// Two sequences of one head of size 1 whose queries and keys are 0, with a bias for both.
TEST(MicrosoftAttentionTest, ABiasForAllSequences) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("q", {2, 1, 1}).Input("v", {2, 2, 1}).Floats("k", {2, 2, 1}, {0, 0, 0, 0});
  model.Floats("bias", {1, 1, 1, 2}, {0, std::log(3.0f)});
  model.Node("MultiHeadAttention", {"q", "k", "v", "", "", "bias"}, {"y"}, {Int("num_heads", 1)});
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  model.Output("y");
  ExpectNear(Computed(model, {{2, 1, 1}, {2, 2, 1}}, {{0, 0}, {0, 4, 8, 16}})[0], {3, 14});
}

// `op` on q [1,2,4], a matrix m [4,12], masks of rank 4 and keys of earlier requests.
std::string RefusalOf(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<onnx::AttributeProto>& attributes = {}) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("q", {1, 2, 4}).Input("r", {2, 4}).Floats("m", {4, 12}).Floats("odd", {4, 13});
  model.Floats("other_bias", {3, 2, 2, 2});
  model.Tensor("positions", {1, 1, 5, 5}, onnx::TensorProto::INT32)
      ->set_raw_data(std::string(25 * sizeof(int32_t), '\0'));
  model.Integers("mask", {1, 0, 1}).Floats("past", {1, 1, 2, 3, 2}).Floats("keys", {1, 2, 3, 2});
  std::vector<onnx::AttributeProto> all = attributes;
  all.push_back(Int("num_heads", 2));
  model.Node(op, inputs, {"y"}, all).Output("y");
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  return BuiltText(model, {{1, 2, 4}, {2, 4}});
}

TEST(MicrosoftAttentionTest, FormsThatAreRefused) {
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"r", "r", "r"}),
              HasSubstr("queries that are not of rank 3"));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q"}),
              HasSubstr("queries, keys and values in one input"));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q", "q", "q", "", "", "", "keys"}),
              HasSubstr("past keys without past values"));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q", "q", "q", "", "mask"}),
              HasSubstr("a mask of dims [3] for scores of [1,2,2,2]; supported are [batch], "));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q", "q", "q", "", "", "", "", "", "mask"}),
              HasSubstr("past_sequence_length (input 8)"));
  EXPECT_THAT(RefusalOf("Attention", {"q", "m"}, {Int("past_present_share_buffer", 1)}),
              HasSubstr("past_present_share_buffer 1"));
  EXPECT_THAT(RefusalOf("Attention", {"q", "m"}, {Int("do_rotary", 1)}),
              HasSubstr("do_rotary 1; supported are RotaryEmbedding before"));
  EXPECT_THAT(RefusalOf("Attention", {"q", "m", "", "positions"}, {Int("unidirectional", 1)}),
              HasSubstr("a mask of all positions with unidirectional"));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q", "q", "q", "", "positions"}),
              HasSubstr("a mask of dims [1,1,5,5] for scores of [1,2,2,2]; supported are [batch]"));
  EXPECT_THAT(RefusalOf("MultiHeadAttention", {"q", "q", "q", "", "", "other_bias"}),
              HasSubstr("attention_bias of dims [3,2,2,2] for scores of [1,2,2,2]; the first two"));
  EXPECT_THAT(RefusalOf("Attention", {"r", "m"}), HasSubstr("an input that is not of rank 3"));
  EXPECT_THAT(RefusalOf("Attention", {"q", "odd"}),
              HasSubstr("weights of 13 columns for queries, keys and values"));
  EXPECT_THAT(RefusalOf("Attention", {"q", "m", "", "", "past"}),
              HasSubstr("input 4 of dims [1,1,2,3,2], expected [2, batch, heads, length, size]"));
}

}  // namespace
}  // namespace tilewire::reader
