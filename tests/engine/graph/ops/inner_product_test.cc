// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/inner_product.cc become, and what they
// refuse.
#include <gmock/gmock.h>

#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

using testing::Float;
using ::testing::HasSubstr;
using testing::Int;
using testing::OnnxBuilder;

TEST(InnerProductTest, SeveralOperands) {
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

TEST(InnerProductTest, InnerProducts) {
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

TEST(InnerProductTest, MatMulOfHigherRankWorksOnRows) {
  OnnxBuilder model;
  model.Input("x", {2, 7, 4}).Floats("w", {4, 5}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{2, 7, 4}}),
              HasSubstr("y/product [14,5] = inner_product(y/rows) w^T[5,4] transposed\n"
                        "y [2,7,5] = reshape(y/product)\n"));
}

TEST(InnerProductTest, Refusals) {
  ExpectRefused({
      {"weights of integers",
       "MatMul",
       {"x", "shape"},
       {},
       absl::StatusCode::kInvalidArgument,
       "not floating-point"},
      {"inner sizes that differ",
       "MatMul",
       {"m", "m"},
       {},
       absl::StatusCode::kInvalidArgument,
       "does not fit B [2,3]"},
      {"a right side of rank 3",
       "Gemm",
       {"m", "z"},
       {},
       absl::StatusCode::kInvalidArgument,
       "does not fit B [2,2,3]"},
  });
}

}  // namespace
}  // namespace tilewire::graph
