// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/transpose.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(TransposeTest, Operators) {
  ExpectBuilt({
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
  });
}

TEST(TransposeTest, Refusals) {
  ExpectInvalid({
      {"not a permutation", "Transpose", {"x"}, {Ints("perm", {0, 1, 1, 2})}, "permutation"},
  });
}

}  // namespace
}  // namespace tilewire::reader
