// SPDX-License-Identifier: Apache-2.0
//
// Which tensors are converted, and the files that come of it: they load, and compute in integers.
#include "engine/tuning/qdq_file.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/explanation.h"
#include "engine/tuning/conversions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"

namespace tilewire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using tuning::Conversions;
using tuning::Layer;
using tuning::ModelSource;

Conversions ConversionsOf(const Opened& opened, std::vector<bool> is_int8 = {}) {
  if (is_int8.empty()) is_int8.assign(opened.layers.size(), true);
  return tuning::FindConversions(*opened.source, opened.layers, is_int8);
}

TEST(LayersTest, AreThoseWithKnownWeights) {
  OnnxBuilder model(13);
  model.Input("x", {1, 4}).Floats("w", {4, 3}).Floats("b", {3}).Floats("t", {5, 3});
  model.Node("MatMul", {"x", "w"}, {"m"}).Node("Gemm", {"m", "t", "b5"}, {"g"}, {Int("transB", 1)});
  model.Floats("b5", {1}).Node("Gemm", {"g", "t"}, {"h"}, {Float("alpha", 2)});
  model.Node("MatMul", {"h", "h3"}, {"y"}).Node("Reshape", {"h", "s"}, {"h3"}).Output("y");
  const auto source = ModelSource::Parse(model.Serialize(), "made");
  // The last product reads what a later node computes.
  EXPECT_THAT(std::string(source.status().message()),
              HasSubstr("node 'node_y' stands before the one that computes its input 'h3'"));
  model.graph().mutable_node()->SwapElements(3, 4);
  const Opened opened = Open(model.Serialize());
  ASSERT_EQ(opened.layers.size(), 2u);  // neither the factor 2 nor the computed matrix
  EXPECT_EQ(opened.layers[0].axis, 1);
  EXPECT_EQ(opened.layers[1].axis, 0);
  EXPECT_EQ(opened.layers[1].bias, "");  // one number for all outputs stays real
}

TEST(LayersTest, RefuseWhatCannotBeTuned) {
  OnnxBuilder quantized(13);
  quantized.Input("x", {1, 4}).Floats("s", {}, {1}).Node("QuantizeLinear", {"x", "s"}, {"q"});
  quantized.Node("DequantizeLinear", {"q", "s"}, {"y"}).Output("y");
  OnnxBuilder none(13);
  none.Input("x", {1, 4}).Node("Relu", {"x"}, {"y"}).Output("y");
  const struct {
    std::string bytes;
    const char* message;
  } kCases[] = {
      {quantized.Serialize(), "quantized already: node 'node_q' is a QuantizeLinear"},
      {none.Serialize(), "it has no Conv, Gemm or MatMul whose weights are an initializer of f32"},
  };
  for (const auto& test : kCases) {
    const auto source = ModelSource::Parse(test.bytes, "made");
    ASSERT_TRUE(source.ok()) << source.status();
    const auto layers = tuning::FindLayers(*source);
    EXPECT_EQ(layers.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(layers.status().message()), HasSubstr(test.message));
  }
  const auto old = ModelSource::Parse(OnnxBuilder(12).Serialize(), "old.onnx");
  EXPECT_THAT(std::string(old.status().message()), HasSubstr("'old.onnx' is of opset 12"));
}

TEST(ConversionsTest, OfAResidualBlock) {
  const Opened opened = Open(ResidualModel().Serialize());
  ASSERT_EQ(opened.layers.size(), 5u);
  // "second" adds "pooled" to its own result, which stays real.
  EXPECT_THAT(ConversionsOf(opened).tensors,
              ElementsAre("x", "pooled", "first_r", "sum_r", "flat"));
  EXPECT_THAT(ConversionsOf(opened).ties, IsEmpty());
  EXPECT_THAT(ConversionsOf(opened, {false, false, true, true, false}).tensors,
              ElementsAre("first_r", "sum_r"));
}

TEST(ConversionsTest, OfWhatMovesBetweenLayers) {
  OnnxBuilder model(13);
  model.Input("x", {1, 8, 8, 8}).Floats("w", {8, 8, 1, 1}).Floats("v", {8, 16, 1, 1});
  model.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"r"});
  model.Node("MaxPool", {"r"}, {"p"}, {Ints("kernel_shape", {1, 1})});
  model.Node("Conv", {"p", "w"}, {"b"}).Node("Concat", {"p", "b"}, {"c"}, {Int("axis", 1)});
  model.Node("Conv", {"c", "v"}, {"y"}).Output("y");
  const Opened opened = Open(model.Serialize());
  const Conversions all = ConversionsOf(opened);
  EXPECT_THAT(all.tensors, ElementsAre("x", "r", "p", "c"));
  EXPECT_THAT(all.ties, ElementsAre(Pair("r", "p"), Pair("p", "c")));
  // The pooled tensor does not come from an int8 layer: it is converted once it is small.
  EXPECT_THAT(ConversionsOf(opened, {false, true, false}).tensors, ElementsAre("p"));
}

TEST(QdqFileTest, ComputesInIntegersNearTheExactModel) {
  const Opened opened = Open(ResidualModel().Serialize());
  const auto params = ParamsFor(*opened.source, ConversionsOf(opened).tensors);
  tuning::QdqWriter writer(*opened.source, opened.layers);
  const auto file = writer.Write(tuning::Precisions(5, TunedPrecision::kInt8), params);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto exact = LoadBytes(ResidualModel().Serialize()), int8 = LoadBytes(*file);
  const std::vector<float> y = FloatsOf(*exact, kResidualInput),
                           z = FloatsOf(*int8, kResidualInput);
  ASSERT_EQ(y.size(), z.size());
  double squares = 0, differences = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    squares += y[i] * y[i];
    differences += (z[i] - y[i]) * (z[i] - y[i]);
  }
  // Five layers, each of which rounds its source to 1 of 255 of its range: a few hundredths.
  EXPECT_LT(std::sqrt(differences / squares), 0.05);
  EXPECT_GT(differences, 0);
  EXPECT_THAT(StepsOfFloats(*int8, "convolution"), IsEmpty());
  EXPECT_EQ(StepsOfFloats(*exact, "convolution").size(), 4u);
  EXPECT_THAT(StepsOfFloats(*int8, "inner_product"), IsEmpty());
}

TEST(QdqFileTest, KeepsWhatItDoesNotChange) {
  onnx::ModelProto before = ResidualModel().proto();
  before.set_producer_name("a producer");
  before.mutable_graph()->set_name("a graph");
  const Opened opened = Open(before.SerializeAsString());
  tuning::QdqWriter writer(*opened.source, opened.layers);
  const auto file =
      writer.Write({TunedPrecision::kExact, TunedPrecision::kExact, TunedPrecision::kInt8,
                    TunedPrecision::kBf16, TunedPrecision::kExact},
                   ParamsFor(*opened.source, {"first_r"}));
  ASSERT_TRUE(file.ok()) << file.status();
  onnx::ModelProto after;
  ASSERT_TRUE(after.ParseFromString(*file));
  std::set<std::string> nodes, initializers;
  for (const onnx::NodeProto& node : after.graph().node()) nodes.insert(node.name());
  for (const onnx::TensorProto& tensor : after.graph().initializer())
    initializers.insert(tensor.name());
  for (const onnx::NodeProto& node : before.graph().node()) EXPECT_EQ(nodes.count(node.name()), 1u);
  // Nothing reads the real weights of the layer any longer.
  EXPECT_EQ(initializers.count("w_second"), 0u);
  EXPECT_EQ(initializers.count("w_second_s8"), 1u);
  EXPECT_EQ(initializers.count("w_first"), 1u);
  // Without the new nodes and names, all is as it was.
  auto* graph = after.mutable_graph();
  for (int i = graph->node_size() - 1; i >= 0; --i) {
    const std::string& op = graph->node(i).op_type();
    if (op == "QuantizeLinear" || op == "DequantizeLinear")
      graph->mutable_node()->DeleteSubrange(i, 1);
  }
  for (onnx::NodeProto& node : *graph->mutable_node()) {
    for (std::string& input : *node.mutable_input()) {
      const size_t part = input.find("_real");
      if (part != std::string::npos) input = input.substr(0, part);
    }
  }
  EXPECT_EQ(after.graph().node_size(), before.graph().node_size());
  for (int i = 0; i < before.graph().node_size(); ++i)
    EXPECT_EQ(graph->node(i).SerializeAsString(), before.graph().node(i).SerializeAsString());
  EXPECT_EQ(after.producer_name(), "a producer");
  EXPECT_EQ(after.graph().name(), "a graph");
}

TEST(QdqFileTest, NamesAreUnlikeThoseThatThereAre) {
  OnnxBuilder model(13);
  model.Input("x", {1, 4}).Floats("x_scale", {4, 4}).Node("MatMul", {"x", "x_scale"}, {"x_u8"});
  model.Node("MatMul", {"x_u8", "x_scale"}, {"y"}).Output("y");  // the same weights twice
  const Opened opened = Open(model.Serialize());
  tuning::QdqWriter writer(*opened.source, opened.layers);
  const auto file = writer.Write(tuning::Precisions(2, TunedPrecision::kInt8),
                                 ParamsFor(*opened.source, {"x", "x_u8"}));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto int8 = LoadBytes(*file);
  ASSERT_NE(int8, nullptr);
  EXPECT_THAT(StepsOfFloats(*int8, "inner_product"), IsEmpty());
  onnx::ModelProto after;
  ASSERT_TRUE(after.ParseFromString(*file));
  std::set<std::string> names;
  for (const onnx::TensorProto& tensor : after.graph().initializer())
    EXPECT_TRUE(names.insert(tensor.name()).second) << tensor.name();
}

TEST(QdqFileTest, NamesLayersThatHaveNone) {
  OnnxBuilder model(13);
  model.Input("x", {1, 4}).Floats("w", {4, 4}).Node("MatMul", {"x", "w"}, {"a"});
  model.Node("MatMul", {"a", "w"}, {"y"}).Output("y");
  onnx::ModelProto proto = model.proto();
  proto.mutable_graph()->mutable_node(0)->set_name("");
  const Opened opened = Open(proto.SerializeAsString());
  tuning::QdqWriter writer(*opened.source, opened.layers);
  EXPECT_EQ(opened.layers[0].step, "#0");
  const tuning::Precisions one = {TunedPrecision::kBf16, TunedPrecision::kExact};
  const tuning::Precisions other = {TunedPrecision::kExact, TunedPrecision::kBf16};
  onnx::ModelProto named;
  ASSERT_TRUE(named.ParseFromString(writer.Write(one, {}).value()));
  EXPECT_EQ(named.graph().node(0).name(), "a");
  EXPECT_EQ(writer.Write(other, {}).value(), opened.source->bytes());  // it has a name
  // Nor does a name that two nodes have tell them apart.
  proto.mutable_graph()->mutable_node(0)->set_name(proto.graph().node(1).name());
  const Opened twins = Open(proto.SerializeAsString());
  EXPECT_EQ(twins.layers[0].name, "a");
  EXPECT_EQ(twins.layers[1].name, "y");
}

TEST(QdqFileTest, RefusesWeightsThatAreNotFinite) {
  OnnxBuilder model(13);
  model.Input("x", {1, 1}).Floats("w", {1, 1}, {INFINITY}).Node("MatMul", {"x", "w"}, {"y"});
  model.Output("y");
  const Opened opened = Open(model.Serialize());
  tuning::QdqWriter writer(*opened.source, opened.layers);
  EXPECT_THAT(std::string(writer
                              .Write(tuning::Precisions(1, TunedPrecision::kInt8),
                                     ParamsFor(*opened.source, {"x"}))
                              .status()
                              .message()),
              HasSubstr("weights 'w' are not all finite"));
}

}  // namespace
}  // namespace tilewire::testing
