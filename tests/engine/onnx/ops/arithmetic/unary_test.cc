// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/arithmetic/unary.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(UnaryTest, Operators) {
  ExpectBuilt({
      {"exp", 13, "Exp", {}, {2, 3}, "y [2,3] = activation(x) exp(0,0)"},
      {"abs", 13, "Abs", {}, {2, 3}, "y [2,3] = activation(x) abs(0,0)"},
      {"sqrt", 13, "Sqrt", {}, {2, 3}, "y [2,3] = activation(x) pow(1,0.5)"},
      {"infinity of one sign",
       13,
       "IsInf",
       {Int("detect_positive", 0)},
       {2, 4},
       "y/y/sought [1] = literal() elements=1\ny [2,4] = equal(x, y/y/sought)"},
      {"a logarithm", 13, "Log", {}, {2, 4}, "y [2,4] = log(x)"},
      {"a negation is linear", 13, "Neg", {}, {2, 4}, "y [2,4] = activation(x) linear(-1,0)"},
  });
}

}  // namespace
}  // namespace tilewire::reader
