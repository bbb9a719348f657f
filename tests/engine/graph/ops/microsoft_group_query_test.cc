// SPDX-License-Identifier: Apache-2.0
//
// GroupQueryAttention (engine/graph/ops/microsoft_group_query.cc): which keys are read, where new
// ones go, and what is refused. What it computes otherwise is in tests/conformance.
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
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
              HasSubstr("k_quant_type 'PER_TENSOR'"));
  EXPECT_THAT(refused(2, {Int("do_rotary", 1)}), HasSubstr("do_rotary without cosines and sines"));
  EXPECT_THAT(refused(2, {Int("causal", 0)}), HasSubstr("causal 0"));
}

}  // namespace
}  // namespace tilewire::graph
