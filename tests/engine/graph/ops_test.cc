// SPDX-License-Identifier: Apache-2.0
//
// Shapes and parameters of every operator, one row per case: node, input dims, and the line of the
// network it becomes.
#include <gmock/gmock.h>

#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

using testing::Float;
using ::testing::HasSubstr;
using testing::Int;
using testing::Ints;
using testing::OnnxBuilder;
using testing::String;

std::vector<OpCase> UnaryCases() {
  return {
      {"relu", 13, "Relu", {}, {2, 3}, "y [2,3] = activation(x) relu(0,0)"},
      {"leaky default", 13, "LeakyRelu", {}, {2, 3}, "y [2,3] = activation(x) relu(0.01,0)"},
      {"elu", 13, "Elu", {Float("alpha", 2)}, {2, 3}, "y [2,3] = activation(x) elu(2,0)"},
      {"sigmoid", 13, "Sigmoid", {}, {2, 3}, "y [2,3] = activation(x) logistic(0,0)"},
      {"tanh", 13, "Tanh", {}, {2, 3}, "y [2,3] = activation(x) tanh(0,0)"},
      {"exp", 13, "Exp", {}, {2, 3}, "y [2,3] = activation(x) exp(0,0)"},
      {"abs", 13, "Abs", {}, {2, 3}, "y [2,3] = activation(x) abs(0,0)"},
      {"sqrt", 13, "Sqrt", {}, {2, 3}, "y [2,3] = activation(x) pow(1,0.5)"},
      {"softplus", 13, "Softplus", {}, {2, 3}, "y [2,3] = activation(x) soft_relu(0,0)"},
      {"hard sigmoid",
       13,
       "HardSigmoid",
       {},
       {2, 3},
       "y [2,3] = activation(x) hard_sigmoid(0.2,0.5)"},
      {"hard swish",
       14,
       "HardSwish",
       {},
       {2, 3},
       "y [2,3] = activation(x) hard_swish(0.166667,0.5)"},
      {"relu6 by attributes",
       6,
       "Clip",
       {Float("min", 0), Float("max", 6)},
       {2, 3},
       "y [2,3] = activation(x) bounded_relu(6,0)"},
      {"clip",
       6,
       "Clip",
       {Float("min", -1), Float("max", 1)},
       {2, 3},
       "y [2,3] = activation(x) clip(-1,1)"},
      {"rounds down",
       13,
       "MaxPool",
       {Ints("kernel_shape", {3, 3}), Ints("strides", {2, 2})},
       {1, 4, 8, 8},
       "y [1,4,3,3] = max_pooling(x) kernel=[3,3] strides=[2,2]"},
      {"ceil_mode reaches past the end",
       13,
       "MaxPool",
       {Ints("kernel_shape", {3, 3}), Ints("strides", {2, 2}), Int("ceil_mode", 1)},
       {1, 4, 8, 8},
       "y [1,4,4,4] = max_pooling(x) kernel=[3,3] strides=[2,2] pads=[0,0],[1,1]"},
      {"ceil_mode leaves out a window in the padding",
       13,
       "MaxPool",
       {Ints("kernel_shape", {2, 2}), Ints("strides", {3, 3}), Ints("pads", {1, 1, 1, 1}),
        Int("ceil_mode", 1)},
       {1, 4, 5, 5},
       "y [1,4,2,2] = max_pooling(x) kernel=[2,2] strides=[3,3] pads=[1,1],[1,1]"},
      {"same, upper",
       13,
       "MaxPool",
       {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2}), String("auto_pad", "SAME_UPPER")},
       {1, 4, 5, 5},
       "y [1,4,3,3] = max_pooling(x) kernel=[2,2] strides=[2,2] pads=[0,0],[1,1]"},
      {"same, lower",
       13,
       "MaxPool",
       {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2}), String("auto_pad", "SAME_LOWER")},
       {1, 4, 5, 5},
       "y [1,4,3,3] = max_pooling(x) kernel=[2,2] strides=[2,2] pads=[1,1],[0,0]"},
      {"valid",
       13,
       "MaxPool",
       {Ints("kernel_shape", {2, 2}), String("auto_pad", "VALID")},
       {1, 4, 5, 5},
       "y [1,4,4,4] = max_pooling(x) kernel=[2,2]"},
      {"average",
       13,
       "AveragePool",
       {Ints("kernel_shape", {3, 3}), Ints("pads", {1, 1, 1, 1})},
       {1, 4, 5, 5},
       "y [1,4,5,5] = avg_exclude_padding(x) kernel=[3,3] pads=[1,1],[1,1]"},
      {"counted padding",
       13,
       "AveragePool",
       {Ints("kernel_shape", {3, 3}), Ints("pads", {1, 1, 1, 1}), Int("count_include_pad", 1)},
       {1, 4, 5, 5},
       "y [1,4,5,5] = avg_include_padding(x) kernel=[3,3] pads=[1,1],[1,1]"},
      {"without padding nothing but elements counts",
       13,
       "AveragePool",
       {Ints("kernel_shape", {3, 3}), Ints("strides", {2, 2}), Int("ceil_mode", 1),
        Int("count_include_pad", 1)},
       {1, 4, 6, 6},
       "y [1,4,3,3] = avg_exclude_padding(x) kernel=[3,3] strides=[2,2] pads=[0,0],[1,1]"},
      {"one spatial dimension",
       13,
       "MaxPool",
       {Ints("kernel_shape", {2})},
       {1, 4, 5},
       "y [1,4,4] = max_pooling(x) kernel=[2]"},
      {"global average",
       13,
       "GlobalAveragePool",
       {},
       {2, 4, 5, 6},
       "y [2,4,1,1] = avg_exclude_padding(x) kernel=[5,6]"},
      {"global max",
       13,
       "GlobalMaxPool",
       {},
       {2, 4, 5, 6},
       "y [2,4,1,1] = max_pooling(x) kernel=[5,6]"},
      {"mean",
       13,
       "ReduceMean",
       {Ints("axes", {2, 3})},
       {2, 4, 5, 6},
       "y [2,4,1,1] = avg_exclude_padding(x) kernel=[5,6]"},
      {"mean without the dims",
       13,
       "ReduceMean",
       {Ints("axes", {-1, -2}), Int("keepdims", 0)},
       {2, 4, 5, 6},
       "y/kept [2,4,1,1] = avg_exclude_padding(x) kernel=[5,6]\ny [2,4] = reshape(y/kept)"},
      {"flatten", 13, "Flatten", {}, {2, 4, 5}, "y [2,20] = reshape(x)"},
      {"flatten at 0", 13, "Flatten", {Int("axis", 0)}, {2, 4, 5}, "y [1,40] = reshape(x)"},
      {"squeeze all", 11, "Squeeze", {}, {2, 4, 1, 1}, "y [2,4] = reshape(x)"},
      {"squeeze one", 11, "Squeeze", {Ints("axes", {-1})}, {2, 4, 1, 1}, "y [2,4,1] = reshape(x)"},
      {"unsqueeze", 11, "Unsqueeze", {Ints("axes", {0, 3})}, {2, 4}, "y [1,2,4,1] = reshape(x)"},
      {"transpose reverses",
       13,
       "Transpose",
       {},
       {2, 4, 5},
       "y [5,4,2] = transpose(x) order=[2,1,0]"},
      {"transpose",
       13,
       "Transpose",
       {Ints("perm", {0, 2, 1})},
       {2, 4, 5},
       "y [2,5,4] = transpose(x) order=[0,2,1]"},
      {"softmax from 13 on", 13, "Softmax", {}, {2, 4, 5}, "y [2,4,5] = softmax(x) axis=2"},
      {"softmax before 13 flattens",
       11,
       "Softmax",
       {},
       {2, 4, 5},
       "y/matrix [2,20] = reshape(x)\ny/rows [2,20] = softmax(y/matrix) axis=1\ny [2,4,5] = "
       "reshape(y/rows)"},
      {"softmax before 13 of a matrix", 11, "Softmax", {}, {2, 4}, "y [2,4] = softmax(x) axis=1"},
  };
}

TEST(OpsTest, UnaryOperators) { ExpectBuilt(UnaryCases()); }

struct ConvCase {
  const char* why;
  std::vector<onnx::AttributeProto> attributes;
  std::vector<int64_t> src, weights;
  const char* expected;
};

TEST(OpsTest, Convolution) {
  const ConvCase cases[] = {
      {"no attribute",
       {},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,6,6] = convolution(x) w[4,3,3,3] bias"},
      {"same size",
       {Ints("pads", {1, 1, 1, 1})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,8,8] = convolution(x) w[4,3,3,3] bias pads=[1,1],[1,1]"},
      {"dilation counts from 0",
       {Ints("dilations", {2, 2})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,4,4] = convolution(x) w[4,3,3,3] bias dilations=[1,1]"},
      {"depthwise, stride 2",
       {Int("group", 6), Ints("strides", {2, 2})},
       {2, 6, 9, 9},
       {6, 1, 3, 3},
       "y [2,6,4,4] = convolution(x) w[6,1,3,3] bias groups=6 strides=[2,2]"},
      {"same, odd",
       {String("auto_pad", "SAME_UPPER"), Ints("strides", {2, 2})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,4,4] = convolution(x) w[4,3,3,3] bias strides=[2,2] pads=[0,0],[1,1]"},
      {"one spatial dimension",
       {},
       {1, 3, 8},
       {4, 3, 3},
       "y [1,4,6] = convolution(x) w[4,3,3] bias"},
      {"three spatial dimensions",
       {},
       {1, 3, 8, 8, 8},
       {4, 3, 1, 2, 3},
       "y [1,4,8,7,6] = convolution(x) w[4,3,1,2,3] bias"},
  };
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model;
    model.Input("x", c.src).Floats("w", c.weights).Floats("b", {c.weights[0]});
    model.Node("Conv", {"x", "w", "b"}, {"y"}, c.attributes).Output("y");
    EXPECT_THAT(BuiltText(model, {Dims(c.src.begin(), c.src.end())}),
                HasSubstr(std::string(c.expected) + "\n"));
  }
}

TEST(OpsTest, InnerProducts) {
  OnnxBuilder model;
  model.Input("x", {2, 4}).Floats("w", {4, 5}).Floats("v", {3, 5}).Floats("c", {1, 3});
  model.Node("MatMul", {"x", "w"}, {"h"})
      .Node("Gemm", {"h", "v", "c"}, {"y"}, {Int("transB", 1), Float("alpha", 2)});
  model.Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 4}}),
            "input x [2,4]\n"
            "h [2,5] = inner_product(x) w^T[5,4] transposed\n"
            "y [2,3] = inner_product(h) v*y[3,5] scaled bias\n"
            "output y\n");
}

TEST(OpsTest, MatMulOfHigherRankWorksOnRows) {
  OnnxBuilder model;
  model.Input("x", {2, 7, 4}).Floats("w", {4, 5}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{2, 7, 4}}),
              HasSubstr("y/product [14,5] = inner_product(y/rows) w^T[5,4] transposed\n"
                        "y [2,7,5] = reshape(y/product)\n"));
}

TEST(OpsTest, SumsConcatsAndConstants) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Floats("scalar", {}, {3}).Floats("channels", {2, 1, 1}, {1, 2});
  model.Node("Add", {"x", "scalar"}, {"a"})
      .Node("Mul", {"a", "channels"}, {"b"})
      .Node("Sub", {"scalar", "b"}, {"c"});
  model.Node("Add", {"a", "c"}, {"d"})
      .Node("Concat", {"a", "d"}, {"e"}, {Int("axis", -3)})
      .Output("e");
  EXPECT_EQ(BuiltText(model, {{1, 2, 3, 3}}),
            "input x [1,2,3,3]\n"
            "a [1,2,3,3] = activation(x) linear(1,3)\n"
            "b [1,2,3,3] = convolution(a) b[2,1,1,1] bias groups=2\n"
            "c [1,2,3,3] = activation(b) linear(-1,3)\n"
            "d [1,2,3,3] = sum(a, c)\n"
            "e [1,4,3,3] = concat(a, d) axis=1\n"
            "output e\n");
}

TEST(OpsTest, ClipBoundsAreInputsFromOpset11On) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("low", {}, {0}).Floats("high", {}, {6});
  model.Node("Clip", {"x", "low", "high"}, {"a"})
      .Node("Clip", {"a", "", "high"}, {"b"})
      .Output("b");
  EXPECT_EQ(BuiltText(model, {{2, 3}}),
            "input x [2,3]\na [2,3] = activation(x) bounded_relu(6,0)\n"
            "b [2,3] = activation(a) clip(-3.40282e+38,6)\noutput b\n");
}

// What exporters write for x.view(x.size(0), -1) and for channel_shuffle.
TEST(OpsTest, ShapeArithmeticFoldsForEveryBatch) {
  OnnxBuilder model;
  model.Input("x", {-1, 6, 4, 4})
      .Integers("zero", {0})
      .Integers("rest", {-1})
      .Integers("two", {2})
      .Integers("one", {1});
  model.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"batch"});
  model.Node("Slice", {"shape", "one", "two"}, {"channels"})
      .Node("Div", {"channels", "two"}, {"half"});
  model.Node("Mul", {"half", "two"}, {"all"})
      .Node("Concat", {"batch", "rest", "half"}, {"dims"}, {Int("axis", 0)});
  model.Node("Reshape", {"x", "dims"}, {"y"})
      .Node("Cast", {"y"}, {"z"}, {Int("to", 1)})
      .Output("z");
  EXPECT_EQ(BuiltText(model, {{5, 6, 4, 4}}),
            "input x [5,6,4,4]\ny [5,32,3] = reshape(x)\noutput y\n");
}

struct RefusedCase {
  const char* why;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  absl::StatusCode code;
  const char* message;
};

TEST(OpsTest, RefusesByName) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  const RefusedCase cases[] = {
      {"unknown operator",
       "Einsum",
       {"x"},
       {},
       kUnimplemented,
       "node 'node_y' (Einsum of ai.onnx, opset 13)"},
      {"attribute of the wrong type",
       "Conv",
       {"x", "w"},
       {Ints("group", {1})},
       kInvalid,
       "'group' has type INTS"},
      {"attribute it does not have",
       "Relu",
       {"x"},
       {Int("alpha", 1)},
       kInvalid,
       "unknown attribute 'alpha'"},
      {"too few inputs", "Conv", {"x"}, {}, kInvalid, "1 inputs"},
      {"groups that do not divide", "Conv", {"x", "w"}, {Int("group", 3)}, kInvalid, "do not fit"},
      {"no groups", "Conv", {"x", "w"}, {Int("group", 0)}, kInvalid, "do not fit"},
      {"negative pads", "Conv", {"x", "w"}, {Ints("pads", {-1, 0, 0, 0})}, kInvalid, "pads -1"},
      {"stride 0", "Conv", {"x", "w"}, {Ints("strides", {0, 1})}, kInvalid, "strides 0"},
      {"huge dilation",
       "Conv",
       {"x", "w"},
       {Ints("dilations", {1 << 30, 1})},
       kInvalid,
       "does not fit"},
      {"huge pads",
       "Conv",
       {"x", "w"},
       {Ints("pads", {2147483647, 2147483647, 2147483647, 2147483647})},
       kInvalid,
       "too large"},
      {"kernel larger than the source",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {9, 9})},
       kInvalid,
       "does not fit"},
      {"padding of a whole window",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {2, 2}), Ints("pads", {2, 0, 0, 0})},
       kUnimplemented,
       "padding alone: of 2 elements, padded by 2 and 0"},
      {"a last window in the padding",
       "AveragePool",
       {"x"},
       {Ints("kernel_shape", {2, 2}), Ints("pads", {0, 0, 0, 2})},
       kUnimplemented,
       "padding alone: of 2 elements, padded by 0 and 2"},
      {"reshape of another count",
       "Reshape",
       {"x", "shape"},
       {},
       kInvalid,
       "cannot view [1,4,8,8] as [7]"},
      {"axis outside", "Softmax", {"x"}, {Int("axis", 4)}, kInvalid, "axis 4"},
      {"computed count", "TopK", {"x", "x"}, {}, kUnimplemented, "input 1 is computed"},
      {"weights of integers", "MatMul", {"x", "shape"}, {}, kInvalid, "not floating-point"},
      {"not a permutation",
       "Transpose",
       {"x"},
       {Ints("perm", {0, 1, 1, 2})},
       kInvalid,
       "permutation"},
  };
  for (const RefusedCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model;
    model.Input("x", {1, 4, 8, 8}).Floats("w", {6, 4, 3, 3}).Integers("shape", {7});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    const absl::Status status = Open(model).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("node_y"));
  }
}

}  // namespace
}  // namespace tilewire::graph
