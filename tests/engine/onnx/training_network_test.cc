// SPDX-License-Identifier: Apache-2.0
//
// Networks for training: what is a parameter, what they compute, and what they refuse.
#include <cmath>
#include <functional>

#include "engine/onnx/trainable.h"
#include "tests/engine/onnx/fixture.h"
#include "tests/support/random_tensor.h"

namespace tilewire::reader {

using network::Network;
namespace {

using ::testing::ElementsAre;

// A convolution with batch norm, and a classifier.
OnnxBuilder NormalizedModel() {
  OnnxBuilder model;
  model.Input("x", {-1, 3, 4, 4}).Floats("w", {4, 3, 3, 3}).Floats("g", {4}).Floats("b", {4});
  model.Floats("m", {4}).Floats("v", {4}, {.5f, 1, 2, 1.5f}).Floats("fw", {5, 4});
  model.Floats("fb", {5}).Node("Conv", {"x", "w"}, {"c"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("BatchNormalization", {"c", "g", "b", "m", "v"}, {"n"}, {Float("momentum", .75f)});
  model.Node("Relu", {"n"}, {"r"}).Node("GlobalAveragePool", {"r"}, {"p"});
  model.Node("Flatten", {"p"}, {"f"});
  model.Node("Gemm", {"f", "fw", "fb"}, {"y"}, {Int("transB", 1)});
  return model.Output("y");
}

absl::StatusOr<Network> ForTraining(const OnnxModel& model, const std::vector<Dims>& dims,
                                    const TrainingPurpose& purpose) {
  return model.SpecializeForTraining(dims, purpose);
}

std::string TrainingText(const OnnxBuilder& builder, const std::vector<Dims>& dims,
                         const TrainingPurpose& purpose = {}) {
  const auto model = Open(builder);
  if (!model.ok()) return model.status().ToString();
  const absl::StatusOr<Network> network = ForTraining(**model, dims, purpose);
  return network.ok() ? NetworkToText(*network) : network.status().ToString();
}

std::vector<std::string> TrainableNames(const OnnxBuilder& builder) {
  const auto model = Open(builder);
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<std::string> names;
  for (const ConstantPtr& constant : (*model)->Trainable()) names.push_back(constant->name);
  return names;
}

TEST(TrainingNetworkTest, WeightsAreValuesAndStatisticsAreOfTheBatch) {
  EXPECT_EQ(TrainingText(NormalizedModel(), {{2, 3, 4, 4}}),
            "input x [2,3,4,4]\n"
            "parameter w [4,3,3,3]\n"
            "parameter g [4]\n"
            "parameter b [4]\n"
            "parameter fw [5,4]\n"
            "parameter fb [5]\n"
            "c [2,4,4,4] = computed_convolution(x, w) pads=[1,1],[1,1]\n"
            "r [2,4,4,4], n/batch_mean [4], n/batch_variance [4] ="
            " batch_normalization(c, g, b) epsilon=1e-05 relu\n"
            "p [2,4,1,1] = avg_exclude_padding(r) kernel=[4,4]\n"
            "f [2,4] = reshape(p)\n"
            "y/transB [4,5] = transpose(fw) order=[1,0]\n"
            "y/product [2,5] = matmul(f, y/transB)\n"
            "y [2,5] = add(y/product, fb)\n"
            "statistics m, v by 0.75 of n/batch_mean, n/batch_variance; elements=32\n"
            "output y\n");
}

void AddNormalization(const std::string& name, const std::string& src, OnnxBuilder* model) {
  model->Floats(name + ".g", {4}).Floats(name + ".b", {4}).Floats(name + ".m", {4});
  model->Floats(name + ".v", {4}, {1, 1, 1, 1});
  model->Node("BatchNormalization", {src, name + ".g", name + ".b", name + ".m", name + ".v"},
              {name});
}

// The later one of two normalizations takes the sum; a limited relu, and a sum that is read again.
TEST(TrainingNetworkTest, NormalizationsTakeSumsAndRelus) {
  OnnxBuilder model;
  model.Input("x", {2, 4, 3, 3}).Floats("zero", {}, {0}).Floats("six", {}, {6});
  for (const char* name : {"n1", "n2", "n3", "n4"}) AddNormalization(name, "x", &model);
  model.Node("Add", {"n2", "n1"}, {"s"}).Node("Relu", {"s"}, {"r"});
  model.Node("Add", {"n3", "r"}, {"t"}).Node("Clip", {"n4", "zero", "six"}, {"c"});
  model.Node("Relu", {"t"}, {"u"}).Node("Concat", {"t", "u", "c"}, {"y"}, {Int("axis", 1)});
  const std::string text = TrainingText(model.Output("y"), {{2, 4, 3, 3}});
  EXPECT_THAT(text, HasSubstr("n1 [2,4,3,3], n1/batch_mean"));
  EXPECT_THAT(text, HasSubstr("r [2,4,3,3], n2/batch_mean [4], n2/batch_variance [4] = "
                              "batch_normalization(x, n2.g, n2.b, n1) epsilon=1e-05 adds relu\n"));
  EXPECT_THAT(text, HasSubstr("t [2,4,3,3], n3/batch_mean [4], n3/batch_variance [4] = "
                              "batch_normalization(x, n3.g, n3.b, r) epsilon=1e-05 adds\n"));
  EXPECT_THAT(text, HasSubstr("c [2,4,3,3], n4/batch_mean [4], n4/batch_variance [4] = "
                              "batch_normalization(x, n4.g, n4.b) epsilon=1e-05 relu<=6\n"));
  EXPECT_THAT(text, HasSubstr("u [2,4,3,3] = activation(t) relu(0,0)\n"));
}

TEST(TrainingNetworkTest, GivenStatisticsAreKept) {
  const std::string text =
      TrainingText(NormalizedModel(), {{2, 3, 4, 4}}, {.uses_given_statistics = true});
  EXPECT_THAT(text, HasSubstr("kept m [4]\nkept v [4]\n"));
  EXPECT_THAT(text, HasSubstr("n [2,4,4,4] = batch_normalization(c, g, b, m, v) epsilon=1e-05 "
                              "given\n"));
  EXPECT_THAT(text, Not(HasSubstr("statistics")));
}

TEST(TrainingNetworkTest, WhatIsFrozenIsHeldByOperations) {
  const std::string text = TrainingText(NormalizedModel(), {{2, 3, 4, 4}}, {.frozen = {"w", "fw"}});
  EXPECT_THAT(text, Not(HasSubstr("parameter w ")));
  EXPECT_THAT(text, HasSubstr("= convolution(x) w[4,3,3,3]"));
  EXPECT_THAT(text, HasSubstr("parameter fb [5]\n"));
  EXPECT_THAT(text, HasSubstr("= inner_product(f) fw[5,4]\n"));
  EXPECT_THAT(TrainingText(NormalizedModel(), {{2, 3, 4, 4}}, {.frozen = {"w", "m"}}),
              HasSubstr("training: 'm' is to stay as it is, but is nothing that training changes"));
}

// A model of `x`, which `add` makes of it, and the initializers of it that may learn.
struct TrainableCase {
  const char* why;
  std::vector<int64_t> x;
  std::function<void(OnnxBuilder* model)> add;
  std::vector<std::string> names;
};

std::vector<TrainableCase> TrainableCases() {
  return {
      {"through nodes that move elements",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {2, 3}).Integers("shape", {4, 1}).Floats("a", {2, 2});
         m->Node("Transpose", {"w"}, {"t"}).Node("MatMul", {"x", "t"}, {"p"});
         m->Node("Reshape", {"a", "shape"}, {"r"}).Node("Identity", {"r"}, {"i"});
         m->Node("Concat", {"p", "p"}, {"c"}, {Int("axis", 1)}).Node("MatMul", {"c", "i"}, {"y"});
       },
       {"w", "a"}},
      {"numbers of formulas do not, vectors beside tensors do",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("one", {}, {1}).Floats("half", {1}, {.5f}).Floats("row", {3});
         m->Node("Add", {"x", "one"}, {"a"}).Node("Mul", {"a", "half"}, {"b"});
         m->Node("Sub", {"b", "row"}, {"y"});
       },
       {"row"}},
      {"one number as a weight does",
       {2, 1, 3, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {1, 1, 1, 1}).Floats("b", {1}).Floats("slope", {1});
         m->Node("Conv", {"x", "w", "b"}, {"c"}).Node("PRelu", {"c", "slope"}, {"y"});
       },
       {"w", "b", "slope"}},
      {"bounds and exponents do not",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("low", {}, {0}).Floats("power", {3}, {1, 2, 3}).Floats("w", {3, 3});
         m->Node("Clip", {"x", "low"}, {"c"}).Node("Pow", {"c", "power"}, {"p"});
         m->Node("MatMul", {"p", "w"}, {"y"});
       },
       {"w"}},
      {"what decides a shape does not, though it is added, too",
       {1, 1, 2, 2},
       [](OnnxBuilder* m) {
         m->Floats("front", {2}, {1, 1}).Floats("scales", {2}, {2, 2}).Floats("other", {2}, {1, 1});
         m->Node("Concat", {"front", "scales"}, {"all"}, {Int("axis", 0)});
         m->Node("Resize", {"x", "", "all"}, {"r"}).Node("Mul", {"x", "other"}, {"o"});
         m->Node("Resize", {"o", "", "all"}, {"s"}).Node("Mul", {"s", "r"}, {"y"});
         m->Node("Add", {"x", "scales"}, {"z"});
       },
       {"other"}},
      {"integers and what nothing reads do not",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("unread", {3}).Integers("axes", {1}).Floats("table", {5, 3});
         m->Integers("rows", {4, 0});
         m->Node("Gather", {"table", "rows"}, {"g"}).Node("Add", {"x", "g"}, {"y"});
       },
       {"table"}},
      {"the dims of a weight are known",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {3, 3}).Node("Shape", {"w"}, {"s"}).Node("MatMul", {"x", "w"}, {"p"});
         m->Integers("first", {0}).Integers("last", {1}).Integers("open", {-1});
         m->Node("Slice", {"s", "first", "last"}, {"rows"});
         m->Node("Concat", {"open", "rows"}, {"shape"}, {Int("axis", 0)});
         m->Node("Reshape", {"p", "shape"}, {"y"});
       },
       {"w"}},
      {"constants of several numbers do",
       {2, 3},
       [](OnnxBuilder* m) {
         onnx::AttributeProto value = testing::Attribute("value", onnx::AttributeProto::TENSOR);
         value.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
         for (int i = 0; i < 9; ++i) value.mutable_t()->add_float_data(static_cast<float>(i));
         for (int d = 0; d < 2; ++d) value.mutable_t()->add_dims(3);
         m->Node("Constant", {}, {"w"}, {value}).Node("MatMul", {"x", "w"}, {"p"});
         m->Node("Constant", {}, {"half"}, {Float("value_float", .5f)});
         m->Node("Mul", {"p", "half"}, {"y"});
       },
       {"w"}},
      {"an initializer that is an output does not",
       {2, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {3, 3}).Output("w").Node("MatMul", {"x", "w"}, {"y"});
       },
       {}},
  };
}

TEST(TrainingNetworkTest, OnlyWeightsLearn) {
  for (const TrainableCase& c : TrainableCases()) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model;
    model.Input("x", c.x);
    c.add(&model);
    EXPECT_EQ(TrainableNames(model.Output("y")), c.names);
  }
}

TEST(TrainingNetworkTest, WhatGraphsInNodesReadDoesNotLearn) {
  OnnxBuilder branch, other, model;
  branch.Node("MatMul", {"x", "w"}, {"then"}).Output("then");
  other.Node("MatMul", {"x", "v"}, {"else"}).Output("else");
  onnx::AttributeProto graphs[] = {testing::Attribute("then_branch", onnx::AttributeProto::GRAPH),
                                   testing::Attribute("else_branch", onnx::AttributeProto::GRAPH)};
  *graphs[0].mutable_g() = branch.graph();
  *graphs[1].mutable_g() = other.graph();
  model.Input("x", {2, 3}).Floats("w", {3, 3}).Floats("v", {3, 3}).Floats("u", {3, 3});
  model.Tensor("c", {}, onnx::TensorProto::BOOL)->add_int32_data(1);
  model.Node("If", {"c"}, {"i"}, {graphs[0], graphs[1]}).Node("MatMul", {"i", "u"}, {"y"});
  model.Output("y");
  EXPECT_THAT(TrainableNames(model), ElementsAre("u"));
}

// Outputs for inference, and of the network for training with the statistics that the file has.
void ExpectSameAnswers(const OnnxModel& model, const std::vector<Dims>& dims) {
  const absl::StatusOr<Network> inference = model.Specialize(dims);
  ASSERT_TRUE(inference.ok()) << inference.status();
  const absl::StatusOr<Network> training =
      model.SpecializeForTraining(dims, {.uses_given_statistics = true});
  ASSERT_TRUE(training.ok()) << training.status();
  ASSERT_FALSE(training->parameters.empty());
  std::vector<Elements> inputs;
  for (const Dims& one : dims) {
    const std::vector<float> numbers =
        testing::RandomFloats(*ElementCount(one), 7 + inputs.size(), -1, 1);
    inputs.emplace_back(numbers.begin(), numbers.end());
  }
  const std::vector<Elements> want = Interpret(*inference, inputs);
  const std::vector<Elements> got = Interpret(*training, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    double difference = 0, whole = 0;
    for (size_t k = 0; k < want[i].size(); ++k) {
      difference += (got[i][k] - want[i][k]) * (got[i][k] - want[i][k]);
      whole += want[i][k] * want[i][k];
    }
    // Folded factors and functions of f32 are rounded a few times per operation.
    const double bound = 4 * std::ldexp(1, -24) * static_cast<double>(training->operations.size());
    EXPECT_LE(std::sqrt(difference), bound * std::sqrt(whole)) << "output " << i;
  }
}

std::vector<TrainableCase> AnswerCases() {
  return {
      {"groups, strides and a bias",
       {2, 4, 5, 5},
       [](OnnxBuilder* m) {
         m->Floats("w", {6, 2, 3, 3}).Floats("b", {6});
         m->Node("Conv", {"x", "w", "b"}, {"y"},
                 {Int("group", 2), Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1})});
       },
       {"w", "b"}},
      {"deconvolution",
       {2, 3, 4, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {3, 2, 2, 2}).Floats("b", {2});
         m->Node("ConvTranspose", {"x", "w", "b"}, {"y"}, {Ints("strides", {2, 2})});
       },
       {"w", "b"}},
      {"deconvolution of groups, with paddings, dilations and output padding",
       {2, 32, 4, 5},
       [](OnnxBuilder* m) {
         m->Floats("w", {32, 16, 3, 2}).Floats("b", {32});
         m->Node("ConvTranspose", {"x", "w", "b"}, {"y"},
                 {Int("group", 2), Ints("strides", {2, 3}), Ints("dilations", {1, 2}),
                  Ints("pads", {1, 0, 1, 1}), Ints("output_padding", {1, 2})});
       },
       {"w", "b"}},
      {"deconvolution of each channel, more output padding than padding",
       {1, 6, 4, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {6, 1, 3, 3});
         m->Node("ConvTranspose", {"x", "w"}, {"y"},
                 {Int("group", 6), Ints("strides", {2, 2}), Ints("output_padding", {1, 1})});
       },
       {"w"}},
      {"deconvolution to a size",
       {1, 4, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {4, 5, 3}).Floats("b", {5});
         m->Node("ConvTranspose", {"x", "w", "b"}, {"y"},
                 {Ints("strides", {3}), Ints("output_shape", {10})});
       },
       {"w", "b"}},
      {"deconvolution, the same size times the stride",
       {1, 3, 2, 4, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {3, 2, 3, 2, 3});
         m->Node("ConvTranspose", {"x", "w"}, {"y"},
                 {Ints("strides", {2, 1, 2}), String("auto_pad", "SAME_UPPER")});
       },
       {"w"}},
      {"deconvolution of groups that fill no vector",
       {1, 6, 4, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {6, 2, 3, 3}).Floats("b", {6});
         m->Node("ConvTranspose", {"x", "w", "b"}, {"y"},
                 {Int("group", 3), Ints("strides", {2, 2})});
       },
       {"w", "b"}},
      {"rows of a tensor, and slopes of channels",
       {2, 4, 3},
       [](OnnxBuilder* m) {
         m->Floats("w", {3, 5}).Floats("b", {5}).Floats("s", {4, 1});
         m->Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"a"});
         m->Node("PRelu", {"a", "s"}, {"y"});
       },
       {"w", "b", "s"}},
      {"normalizations of rows, images and groups",
       {2, 4, 3, 3},
       [](OnnxBuilder* m) {
         m->Floats("g", {4}).Floats("h", {4}).Floats("i", {2}).Floats("j", {2});
         m->Floats("k", {3}).Floats("l", {3});
         m->Node("InstanceNormalization", {"x", "g", "h"}, {"a"});
         m->Node("LayerNormalization", {"a", "k", "l"}, {"b"});
         m->Node("GroupNormalization", {"b", "i", "j"}, {"y"}, {Int("num_groups", 2)});
       },
       {"g", "h", "i", "j", "k", "l"}},
      {"batch norm of rows, with scales of Gemm",
       {3, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {4, 4}).Floats("c", {1, 4}).Floats("g", {4}).Floats("b", {4});
         m->Floats("m", {4}).Floats("v", {4}, {1, .5f, 2, 3});
         m->Node("Gemm", {"x", "w", "c"}, {"p"}, {Float("alpha", .5f), Float("beta", 2)});
         m->Node("BatchNormalization", {"p", "g", "b", "m", "v"}, {"y"});
       },
       {"w", "c", "g", "b"}},
      {"a pad before a window, and a hard swish",
       {1, 2, 4, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {2, 2, 3, 3}).Integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
         m->Floats("three", {}, {3}).Floats("zero", {}, {0}).Floats("six", {}, {6});
         m->Node("Pad", {"x", "pads"}, {"p"}).Node("Conv", {"p", "w"}, {"c"});
         m->Node("Add", {"c", "three"}, {"a"}).Node("Clip", {"a", "zero", "six"}, {"l"});
         m->Node("Mul", {"c", "l"}, {"n"}).Node("Div", {"n", "six"}, {"y"});
       },
       {"w"}},
      {"recurrent",
       {3, 2, 4},
       [](OnnxBuilder* m) {
         m->Floats("w", {1, 12, 4}).Floats("r", {1, 12, 3}).Floats("b", {1, 24});
         m->Node("LSTM", {"x", "w", "r", "b"}, {"y"}, {Int("hidden_size", 3)});
       },
       {"w", "r", "b"}},
  };
}

TEST(TrainingNetworkTest, TheSameAnswersAsInference) {
  for (const TrainableCase& c : AnswerCases()) {
    SCOPED_TRACE(c.why);
    OnnxBuilder builder(18);
    builder.Input("x", c.x);
    c.add(&builder);
    EXPECT_EQ(TrainableNames(builder.Output("y")), c.names);
    const auto model = Open(builder);
    ASSERT_TRUE(model.ok()) << model.status();
    ExpectSameAnswers(**model, {Dims(c.x.begin(), c.x.end())});
  }
  const auto model = Open(NormalizedModel());
  ASSERT_TRUE(model.ok()) << model.status();
  ExpectSameAnswers(**model, {{2, 3, 4, 4}});
}

TEST(TrainingNetworkTest, DigitsGivesTheSameAnswers) {
  const auto model = OnnxModel::Open("deploy/models/digits/1/model.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  Dims dims = (*model)->inputs()[0].dims;
  dims[0] = 2;
  ExpectSameAnswers(**model, {dims});
  const absl::StatusOr<Network> training = (*model)->SpecializeForTraining({dims}, {});
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_EQ(training->parameters.size(), (*model)->Trainable().size());
  EXPECT_EQ(training->parameters[0].name, "stem.0.weight");
  ASSERT_FALSE(training->statistics.empty());
  EXPECT_EQ(training->statistics[0].mean->name, "stem.1.running_mean");
  EXPECT_FLOAT_EQ(training->statistics[0].momentum, 0.9f);
}

TEST(TrainingNetworkTest, PassesKeepParametersApart) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 4, 4}).Floats("w", {2, 2, 3, 3}).Floats("v", {2, 2, 3, 3});
  model.Integers("pads", {0, 0, 1, 1, 0, 0, 1, 1});
  model.Node("Pad", {"x", "pads"}, {"p"}).Node("Conv", {"p", "w"}, {"c"});
  model.Node("Relu", {"c"}, {"r"}).Node("Conv", {"r", "v"}, {"d"}).Node("Sigmoid", {"d"}, {"s"});
  model.Node("Mul", {"d", "s"}, {"y"}).Output("y");
  EXPECT_EQ(TrainingText(model, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\n"
            "parameter w [2,2,3,3]\n"
            "parameter v [2,2,3,3]\n"
            "c [1,2,4,4] = computed_convolution(x, w) pads=[1,1],[1,1]\n"
            "r [1,2,4,4] = activation(c) relu(0,0)\n"
            "d [1,2,2,2] = computed_convolution(r, v)\n"
            "y [1,2,2,2] = activation(d) swish(1,0)\n"
            "output y\n");
}

// A ConvTranspose of x [1, channels, 3, 3] with weights [channels, ...] that learn.
std::string LearningText(const std::vector<int64_t>& weights,
                         const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model;
  const Dims x = {1, weights[0], 3, 3};
  model.Input("x", {x.begin(), x.end()}).Floats("w", weights);
  model.Node("ConvTranspose", {"x", "w"}, {"y"}, attributes).Output("y");
  return TrainingText(model, {x});
}

TEST(TrainingNetworkTest, DeconvolutionsThatLearnTakeNoZerosBetween) {
  const onnx::AttributeProto strides = Ints("strides", {2, 2});
  EXPECT_EQ(LearningText({2, 4, 3, 3},
                         {strides, Ints("pads", {1, 1, 1, 1}), Ints("output_padding", {1, 1})}),
            "input x [1,2,3,3]\n"
            "parameter w [2,4,3,3]\n"
            "y [1,4,6,6] = computed_deconvolution(x, w) strides=[2,2] pads=[1,1],[0,0]\n"
            "output y\n");
  EXPECT_THAT(LearningText({2, 4, 2, 2}, {strides, Ints("output_padding", {1, 1})}),
              HasSubstr("y [1,4,7,7] = computed_deconvolution(x, w) strides=[2,2]\n"));
  EXPECT_THAT(LearningText({6, 1, 2, 2}, {strides, Int("group", 6)}),
              HasSubstr("y [1,6,6,6] = computed_deconvolution(x, w) groups=6 strides=[2,2]\n"));
  // No row has groups of few channels, nor windows that end before all that a stride leaves.
  for (const std::string& text :
       {LearningText({6, 2, 2, 2}, {strides, Int("group", 3)}),
        LearningText({2, 4, 2, 2}, {strides, Ints("output_shape", {9, 9})})})
    EXPECT_THAT(text, HasSubstr("computed_convolution(y/spread, y/turned)"));
}

TEST(TrainingNetworkTest, RefusesABatchWithoutVariance) {
  OnnxBuilder model(13);
  model.Input("x", {2, 4}).Floats("w", {4, 4}).Floats("g", {4}).Floats("b", {4}).Floats("m", {4});
  model.Floats("v", {4}, {1, 1, 1, 1}).Node("MatMul", {"x", "w"}, {"p"});
  model.Node("BatchNormalization", {"p", "g", "b", "m", "v"}, {"y"}).Output("y");
  EXPECT_THAT(TrainingText(model, {{2, 4}}), HasSubstr("elements=2"));

  OnnxBuilder single = NormalizedModel();
  single.Floats("o", {5}).Floats("z", {5}).Floats("q", {5}).Floats("e", {5}, {1, 1, 1, 1, 1});
  single.Node("BatchNormalization", {"y", "o", "z", "q", "e"}, {"last"}).Output("last");
  EXPECT_THAT(TrainingText(single, {{1, 3, 4, 4}}),
              HasSubstr("node 'node_last' (BatchNormalization of ai.onnx, opset 13): channels of "
                        "one element in the batch have no variance to train with"));
  EXPECT_THAT(TrainingText(single, {{1, 3, 4, 4}}, {.uses_given_statistics = true}),
              HasSubstr("batch_normalization(y, o, z, q, e)"));
  EXPECT_THAT(TrainingText(NormalizedModel(), {{0, 3, 4, 4}}),
              HasSubstr("training: input 'x' has no elements"));
}

TEST(TrainingNetworkTest, RefusesQuantizedModelsAndSizesThatAreComputed) {
  OnnxBuilder quantized;
  quantized.Input("x", {2, 3}).Bytes("w", {3, 3}, true).Floats("s", {}, {.5f});
  quantized.Node("DequantizeLinear", {"w", "s"}, {"d"}).Node("MatMul", {"x", "d"}, {"y"});
  EXPECT_THAT(TrainingText(quantized.Output("y"), {{2, 3}}),
              HasSubstr("node 'node_d' (DequantizeLinear of ai.onnx, opset 13): training of a "
                        "quantized model"));
  OnnxBuilder by_input;
  by_input.Input("x", {2, 3}).Input("shape", {2}, onnx::TensorProto::INT64).Floats("w", {3, 3});
  by_input.Node("MatMul", {"x", "w"}, {"p"}).Node("Reshape", {"p", "shape"}, {"y"}).Output("y");
  EXPECT_THAT(TrainingText(by_input, {{2, 3}, {2}}),
              HasSubstr("training: the elements of input 'shape' decide shapes"));
}

}  // namespace
}  // namespace tilewire::reader
