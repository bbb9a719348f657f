// SPDX-License-Identifier: Apache-2.0
//
// Attention in networks for training, from every kind of node: it stays the operations that it
// consists of, because the single operation that inference fuses them into has no gradient.
#include <utility>

#include "engine/network/training/differentiate.h"
#include "engine/onnx/trainable.h"
#include "tests/engine/onnx/fixture.h"
#include "tests/support/random_tensor.h"

namespace tilewire::reader {
namespace {

struct AttentionCase {
  std::string node;
  std::string domain;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  std::vector<std::string> trainable;
};

std::vector<AttentionCase> AttentionCases() {
  const onnx::AttributeProto heads = Int("num_heads", 2);
  return {{"Attention",
           "",
           {"q", "k", "v"},
           {Int("q_num_heads", 2), Int("kv_num_heads", 2)},
           {"wq", "wk", "wv", "out"}},
          {"Attention",
           "com.microsoft",
           {"q", "packed", "bias"},
           {heads},
           {"wq", "packed", "bias", "out"}},
          {"MultiHeadAttention",
           "com.microsoft",
           {"q", "k", "v", "bias"},
           {heads},
           {"wq", "wk", "wv", "bias", "out"}}};
}

// A product of x before each input that is computed, and one after the node.
OnnxBuilder ModelOf(const AttentionCase& c) {
  OnnxBuilder model(23);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("x", {2, 3, 4}).Floats("out", {4, 4});
  for (const std::string& input : c.inputs) {
    if (input == "packed") {
      model.Floats(input, {4, 12});
    } else if (input == "bias") {
      model.Floats(input, {12});
    } else {
      model.Floats("w" + input, {4, 4}).Node("MatMul", {"x", "w" + input}, {input});
    }
  }
  model.Node(c.node, c.inputs, {"a"}, c.attributes);
  model.graph().mutable_node()->rbegin()->set_domain(c.domain);
  return std::move(model.Node("MatMul", {"a", "out"}, {"y"}).Output("y"));
}

TEST(AttentionTrainingTest, NodesAreTheOperationsThatTheyConsistOf) {
  const std::vector<Dims> dims = {{2, 3, 4}};
  const std::vector<float> numbers = testing::RandomFloats(24, 7, -1, 1);
  const std::vector<Elements> inputs = {{numbers.begin(), numbers.end()}};
  for (const AttentionCase& c : AttentionCases()) {
    SCOPED_TRACE(c.domain + c.node);
    const auto model = Open(ModelOf(c));
    ASSERT_TRUE(model.ok()) << model.status();
    std::vector<std::string> names;
    for (const ConstantPtr& constant : (*model)->Trainable()) names.push_back(constant->name);
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(c.trainable));
    const network::Network inference = (*model)->Specialize(dims).value();
    EXPECT_THAT(NetworkToText(inference), HasSubstr("= attention("));
    auto training = (*model)->SpecializeForTraining(dims, {});
    ASSERT_TRUE(training.ok()) << training.status();
    EXPECT_THAT(NetworkToText(*training),
                AllOf(HasSubstr("= softmax("), Not(HasSubstr("= attention("))));
    ExpectNear(Interpret(*training, inputs)[0], Interpret(inference, inputs)[0]);
    std::vector<network::ValueId> parameters;
    for (const network::Parameter& one : training->parameters) parameters.push_back(one.value);
    const network::ValueId y = training->outputs[0];
    const auto gradients = network::Differentiate({{y, y}}, parameters, &*training);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    EXPECT_THAT(*gradients, ::testing::Each(::testing::Ne(network::kNoValue)));
  }
}

}  // namespace
}  // namespace tilewire::reader
