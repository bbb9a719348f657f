// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/products/inner_product.cc become, and what
// they refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

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
  ExpectInvalid({
      {"weights of integers", "MatMul", {"x", "shape"}, {}, "not floating-point"},
      {"inner sizes that differ", "MatMul", {"m", "m"}, {}, "does not fit B [2,3]"},
      {"a right side of rank 3", "Gemm", {"m", "z"}, {}, "does not fit B [2,2,3]"},
  });
}

}  // namespace
}  // namespace tilewire::reader
