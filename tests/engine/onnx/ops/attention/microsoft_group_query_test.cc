// SPDX-License-Identifier: Apache-2.0
//
// GroupQueryAttention (engine/onnx/ops/attention/microsoft_group_query.cc): which keys are read,
// where new ones go, and what is refused. What it computes otherwise is in tests/conformance.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// A new token of each of `batch` sequences after a buffer of 3, of one head of size 2. Queries are
// 0, so that all keys have equal shares.
OnnxBuilder Tokens(int64_t batch, int64_t total,
                   std::vector<onnx::AttributeProto> attributes = {}) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  for (const char* name : {"q", "k", "v"}) model.Input(name, {batch, 1, 2});
  model.Input("pk", {batch, 1, 3, 2}).Input("pv", {batch, 1, 3, 2});
  model.Input("last", {batch}, onnx::TensorProto::INT32);
  model.Tensor("total", {1}, onnx::TensorProto::INT32)->add_int32_data(static_cast<int>(total));
  attributes.push_back(Int("num_heads", 1));
  if (attributes.size() < 2 || attributes[0].name() != "kv_num_heads")
    attributes.push_back(Int("kv_num_heads", 1));
  model.Node("GroupQueryAttention", {"q", "k", "v", "pk", "pv", "last", "total"}, {"y", "ck", "cv"},
             attributes);
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  return model.Output("y").Output("ck").Output("cv");
}

TEST(MicrosoftGroupQueryTest, ABufferIsReadToItsTotalLength) {
  const std::vector<Dims> dims = {{1, 1, 2}, {1, 1, 2}, {1, 1, 2}, {1, 1, 3, 2}, {1, 1, 3, 2}, {1}};
  const Elements past = {1, 2, 3, 4, 50, 60};
  EXPECT_EQ(Computed(Tokens(1, 2), dims, {{0, 0}, {7, 8}, {5, 6}, past, past, {1}}),
            (std::vector<Elements>{{3, 4}, {1, 2, 7, 8, 50, 60}, {1, 2, 5, 6, 50, 60}}));
  EXPECT_EQ(
      Computed(Tokens(1, 4), dims, {{0, 0}, {7, 8}, {6, 14}, past, past, {3}}),
      (std::vector<Elements>{{15, 20}, {1, 2, 3, 4, 50, 60, 7, 8}, {1, 2, 3, 4, 50, 60, 6, 14}}));
  const onnx::AttributeProto window = Int("local_window_size", 2);
  EXPECT_EQ(Computed(Tokens(1, 3, {window}), dims, {{0, 0}, {7, 8}, {5, 6}, past, past, {2}})[0],
            (Elements{4, 5}));
}

TEST(MicrosoftGroupQueryTest, SequencesHaveLengthsOfTheirOwn) {
  const std::vector<Dims> dims = {{2, 1, 2}, {2, 1, 2}, {2, 1, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {2}};
  const Elements past = {1, 2, 3, 4, 50, 60, 11, 12, 13, 14, 15, 16};
  const std::vector<Elements> computed = Computed(
      Tokens(2, 3), dims, {{0, 0, 0, 0}, {7, 8, 9, 10}, {5, 6, 30, 31}, past, past, {1, 2}});
  ASSERT_EQ(computed.size(), 3u);
  ExpectNear(computed[0], {3, 4, 18, 19});
  EXPECT_EQ(computed[1], (Elements{1, 2, 7, 8, 50, 60, 11, 12, 13, 14, 9, 10}));
  EXPECT_EQ(computed[2], (Elements{1, 2, 5, 6, 50, 60, 11, 12, 13, 14, 30, 31}));
}

// A cache of `bits` bits in `type`, of scales "ks" and "vs", which the caller adds.
struct Quantization {
  const char* type;
  int bits;
  onnx::TensorProto::DataType held;
};

// A new token of each of `batch` sequences after a buffer of 3, of one head of `size`, with a
// quantized cache.
OnnxBuilder QuantizedTokens(int64_t batch, int64_t size, int total, Quantization quantization) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  for (const char* name : {"q", "k", "v"}) model.Input(name, {batch, 1, size});
  for (const char* name : {"pk", "pv"})
    model.Input(name, {batch, 1, 3, size * quantization.bits / 8}, quantization.held);
  model.Input("last", {batch}, onnx::TensorProto::INT32);
  model.Tensor("total", {1}, onnx::TensorProto::INT32)->add_int32_data(total);
  model.Node(
      "GroupQueryAttention",
      {"q", "k", "v", "pk", "pv", "last", "total", "", "", "", "", "", "ks", "vs"},
      {"y", "ck", "cv"},
      {Int("num_heads", 1), Int("kv_num_heads", 1), Int("kv_cache_bit_width", quantization.bits),
       String("k_quant_type", quantization.type), String("v_quant_type", quantization.type)});
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  return model.Output("y").Output("ck").Output("cv");
}

Elements Sines(int start) {
  Elements sines;
  for (int i = 0; i < 8; ++i) sines.push_back(std::sin(start + i));
  return sines;
}

// Bytes start, start + 37, ... as the type has them.
Elements BytesFrom(int start, int count, bool is_signed) {
  Elements bytes;
  for (int i = 0; i < count; ++i) {
    const int byte = (start + 37 * i) % 256;
    bytes.push_back(is_signed && byte > 127 ? byte - 256 : byte);
  }
  return bytes;
}

// `past` with `row` in the place of the last of its three rows.
Elements WithLastRow(Elements past, const Elements& row) {
  std::copy(row.begin(), row.end(), past.end() - static_cast<int64_t>(row.size()));
  return past;
}

// The numbers are those that ONNX Runtime 1.30 gives: a head of size 8, one of three rows new.
void ExpectQuantized(Quantization quantization, const Elements& expected, const Elements& key,
                     const Elements& value) {
  SCOPED_TRACE(absl::StrCat(quantization.type, " of ", quantization.bits));
  const bool is_of_channels = std::string(quantization.type) == "PER_CHANNEL";
  OnnxBuilder model = QuantizedTokens(1, 8, 3, quantization);
  for (const auto& [name, factor] : {std::pair("ks", 1.0f), {"vs", 2.0f}}) {
    const float first = factor * (quantization.bits == 8 ? 0.008f : 0.125f);
    std::vector<float> scales(is_of_channels ? 8 : 1);
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = first * (1 + static_cast<float>(i) / 8);
    model.Floats(name, is_of_channels ? std::vector<int64_t>{1, 1, 1, 8} : std::vector<int64_t>{1},
                 scales);
  }
  const bool is_signed = quantization.bits == 8;
  const int held = quantization.bits, count = 3 * held;  // bytes of a row, and of all
  const Elements keys = BytesFrom(3, count, is_signed), values = BytesFrom(90, count, is_signed);
  const Dims token = {1, 1, 8}, cache = {1, 1, 3, held};
  const std::vector<Elements> computed =
      Computed(model, {token, token, token, cache, cache, {1}},
               {Sines(0), Sines(10), Sines(20), keys, values, {2}});
  ASSERT_EQ(computed.size(), 3u);
  ExpectNear(computed[0], expected);
  EXPECT_EQ(computed[1], WithLastRow(keys, key));
  EXPECT_EQ(computed[2], WithLastRow(values, value));
}

TEST(MicrosoftGroupQueryTest, QuantizedCachesAsOnnxRuntime) {
  const Quantization bytes = {"PER_TENSOR", 8, onnx::TensorProto::INT8};
  ExpectQuantized(
      bytes, {-0.172146, 0.372761, -1.078272, -0.586064, -0.040036, 0.565419, 1.178723, -0.124146},
      {-68, -125, -67, 53, 124, 81, -36, -120}, {57, 52, -1, -53, -57, -8, 48, 60});
  ExpectQuantized(
      {"PER_CHANNEL", bytes.bits, bytes.held},
      {-0.140225, 0.462814, -1.383879, -0.795031, -0.026002, 0.928363, 2.028414, -0.217092},
      {-68, -111, -54, 38, 83, 50, -21, -64}, {57, 46, 0, -38, -38, -5, 27, 32});
  const Quantization halves = {"PER_TENSOR", 4, onnx::TensorProto::UINT8};
  ExpectQuantized(halves,
                  {1.057588, 0.565167, 0.036841, -1.045985, -0.523206, -0.45558, 0.807588, 0.16561},
                  {4, 180, 223, 6}, {188, 88, 116, 203});
  ExpectQuantized(
      {"PER_CHANNEL", halves.bits, halves.held},
      {1.020664, 0.548758, 0.179768, -1.296085, -0.719004, -0.560414, 1.271322, 0.290868},
      {20, 165, 189, 71}, {188, 104, 134, 170});
}

TEST(MicrosoftGroupQueryTest, QuantizedSequencesHaveLengthsOfTheirOwn) {
  OnnxBuilder model = QuantizedTokens(2, 2, 3, {"PER_TENSOR", 8, onnx::TensorProto::INT8});
  model.Floats("ks", {1}, {0.5f}).Floats("vs", {1}, {0.5f});
  const Elements past = {1, 2, 3, 4, 50, 60, 11, 12, 13, 14, 15, 16};
  const std::vector<Elements> computed =
      Computed(model, {{2, 1, 2}, {2, 1, 2}, {2, 1, 2}, {2, 1, 3, 2}, {2, 1, 3, 2}, {2}},
               {{0, 0, 0, 0}, {7, 8, 9, 10}, {5, 6, 30, 31}, past, past, {1, 2}});
  ASSERT_EQ(computed.size(), 3u);
  ExpectNear(computed[0], {2.75, 3.5, 14, 44.0 / 3});
  EXPECT_EQ(computed[1], (Elements{1, 2, 14, 16, 50, 60, 11, 12, 13, 14, 18, 20}));
  EXPECT_EQ(computed[2], (Elements{1, 2, 10, 12, 50, 60, 11, 12, 13, 14, 60, 62}));
}

TEST(MicrosoftGroupQueryTest, QuantizationsThatAreRefused) {
  const auto refused = [](Quantization quantization, const std::vector<int64_t>& scales,
                          const std::vector<float>& of_keys = {}) {
    OnnxBuilder model = QuantizedTokens(1, 8, 3, quantization);
    model.Floats("ks", scales, of_keys).Floats("vs", scales);
    const Dims token = {1, 1, 8}, cache = {1, 1, 3, quantization.bits};
    return BuiltText(model, {token, token, token, cache, cache, {1}});
  };
  EXPECT_THAT(refused({"PER_TENSOR", 8, onnx::TensorProto::UINT8}, {1}),
              HasSubstr("a cache of 8 bits (kv_cache_bit_width) in u8; supported are 8 in s8 and"));
  EXPECT_THAT(refused({"PER_TENSOR", 2, onnx::TensorProto::UINT8}, {1}),
              HasSubstr("a cache of 2 bits (kv_cache_bit_width) in u8"));
  EXPECT_THAT(refused({"PER_TOKEN", 8, onnx::TensorProto::INT8}, {1}), HasSubstr("'PER_TOKEN'"));
  EXPECT_THAT(refused({"NONE", 8, onnx::TensorProto::INT8}, {1}),
              HasSubstr("k_quant_type 'NONE' with scales (input 12)"));
  EXPECT_THAT(refused({"PER_CHANNEL", 8, onnx::TensorProto::INT8}, {1}),
              HasSubstr("scales (input 12) of dims [1] for k_quant_type 'PER_CHANNEL' of 1 heads"));
  EXPECT_THAT(refused({"PER_TENSOR", 8, onnx::TensorProto::INT8}, {1}, {0}),
              HasSubstr("a scale of 0"));
}

TEST(MicrosoftGroupQueryTest, Refusals) {
  const auto refused = [](int64_t total, std::vector<onnx::AttributeProto> attributes,
                          const std::vector<int64_t>& buffer = {1, 1, 3, 2}) {
    const Dims past(buffer.begin(), buffer.end());
    return BuiltText(Tokens(1, total, std::move(attributes)),
                     {{1, 1, 2}, {1, 1, 2}, {1, 1, 2}, past, {1, 1, 3, 2}, {1}});
  };
  EXPECT_THAT(refused(0, {}), HasSubstr("a total length of 0 for 1 tokens after 3"));
  EXPECT_THAT(refused(5, {}), HasSubstr("a total length of 5 for 1 tokens after 3"));
  EXPECT_THAT(refused(2, {Int("kv_num_heads", 3)}), HasSubstr("num_heads 1 and kv_num_heads 3"));
  EXPECT_THAT(refused(2, {String("k_quant_type", "PER_TENSOR")}),
              HasSubstr("k_quant_type 'PER_TENSOR' without scales (input 12)"));
  EXPECT_THAT(refused(2, {Int("do_rotary", 1)}), HasSubstr("do_rotary without cosines and sines"));
  EXPECT_THAT(refused(2, {Int("causal", 0)}), HasSubstr("causal 0"));
}

}  // namespace
}  // namespace tilewire::reader
