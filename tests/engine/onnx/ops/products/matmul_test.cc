// SPDX-License-Identifier: Apache-2.0
//
// The networks that products of computed matrices become (engine/onnx/ops/products/matmul.cc), and
// what these compute.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(MatMulTest, OfComputedOperands) {
  ExpectBuiltFrom({
      {"product of computed matrices",
       "MatMul",
       {"x", "z"},
       {},
       {2, 3, 4},
       "y [2,3,5] = matmul(x, z)\n"},
      {"a stack against one matrix of a higher rank",
       "MatMul",
       {"x", "stack"},
       {},
       {3, 4},
       "y/left [1,3,4] = reshape(x)\n"
       "y/stack [2,4,5] = literal() elements=40\n"
       "y [2,3,5] = matmul(y/left, y/stack)\n"},
      {"a row and a column are dropped",
       "MatMul",
       {"x", "x"},
       {},
       {4},
       "y/row [1,4] = reshape(x)\ny/column [4,1] = reshape(x)\n"
       "y/product [1,1] = matmul(y/row, y/column)\ny [1] = reshape(y/product)\n"},
      {"gemm of computed matrices",
       "Gemm",
       {"x", "x", "five"},
       {Int("transB", 1), Float("alpha", 2)},
       {5, 4},
       "y/transB [4,5] = transpose(x) order=[1,0]\ny/product [5,5] = matmul(x, y/transB)\n"
       "y/alpha [5,5] = activation(y/product) linear(2,0)\n"
       "y/spatial [5,5,1] = reshape(y/alpha)\n"
       "y/scaled [5,5,1] = convolution(y/spatial) y[5,1,1] bias groups=5\n"
       "y [5,5] = reshape(y/scaled)\n"},
  });
}

TEST(MatMulTest, RowsAndColumnsAreVectors) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Input("v", {3}).Input("u", {2});
  model.Node("MatMul", {"x", "v"}, {"column"}).Node("MatMul", {"u", "x"}, {"row"});
  model.Output("column").Output("row");
  // numpy.matmul: [[1, 2, 3], [4, 5, 6]] by [1, 0, 2], and [10, 1] by the same matrix.
  EXPECT_EQ(Computed(model, {{2, 3}, {3}, {2}}, {{1, 2, 3, 4, 5, 6}, {1, 0, 2}, {10, 1}}),
            (std::vector<Elements>{{7, 16}, {14, 25, 36}}));
}

TEST(MatMulTest, StacksBroadcast) {
  OnnxBuilder model;
  model.Input("x", {2, 1, 1, 2}).Input("z", {2, 2, 1});
  model.Node("MatMul", {"x", "z"}, {"y"}).Output("y");
  // y[i, j] = x[i] z[j]: [1, 2] and [3, 4] by [1, 1] and [0, 10].
  EXPECT_EQ(Computed(model, {{2, 1, 1, 2}, {2, 2, 1}}, {{1, 2, 3, 4}, {1, 1, 0, 10}})[0],
            Elements({3, 20, 7, 40}));
}

TEST(MatMulTest, GemmScalesTheProductAndWhatItAdds) {
  OnnxBuilder model;
  model.Input("a", {2, 1}).Input("b", {2, 2}).Floats("c", {2}, {100, 200});
  model.Node("Gemm", {"a", "b", "c"}, {"y"},
             {Int("transA", 1), Float("alpha", 2), Float("beta", 0.5f)});
  // 2 [1, 10] [[1, 2], [3, 4]] + [50, 100].
  EXPECT_EQ(Computed(model.Output("y"), {{2, 1}, {2, 2}}, {{1, 10}, {1, 2, 3, 4}})[0],
            Elements({112, 184}));
}

}  // namespace
}  // namespace tilewire::reader
