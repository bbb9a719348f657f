// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/normalization/lrn.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(LrnTest, SeveralOperands) {
  ExpectBuiltFrom({
      {"lrn",
       "LRN",
       {"x"},
       {Int("size", 5), Float("bias", 2)},
       {2, 4, 5, 6},
       "y [2,4,5,6] = lrn(x) size=5 (0.0001,0.75,2)\n"},
  });
}

TEST(LrnTest, Refusals) {
  ExpectInvalid({
      {"no channels in the window", "LRN", {"z"}, {Int("size", 0)}, "size 0"},
  });
}

}  // namespace
}  // namespace tilewire::reader
