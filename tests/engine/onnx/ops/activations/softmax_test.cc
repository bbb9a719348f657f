// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/activations/softmax.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(SoftmaxTest, Operators) {
  ExpectBuilt({
      {"softmax from 13 on", 13, "Softmax", {}, {2, 4, 5}, "y [2,4,5] = softmax(x) axis=2"},
      {"softmax before 13 flattens",
       11,
       "Softmax",
       {},
       {2, 4, 5},
       "y/matrix [2,20] = reshape(x)\ny/rows [2,20] = softmax(y/matrix) axis=1\ny [2,4,5] = "
       "reshape(y/rows)"},
      {"softmax before 13 of a matrix", 11, "Softmax", {}, {2, 4}, "y [2,4] = softmax(x) axis=1"},
  });
}

TEST(SoftmaxTest, Refusals) {
  ExpectInvalid({
      {"axis outside", "Softmax", {"x"}, {Int("axis", 4)}, "axis 4"},
  });
}

}  // namespace
}  // namespace tilewire::reader
