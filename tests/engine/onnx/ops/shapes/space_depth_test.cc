// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/space_depth.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(SpaceDepthTest, Operators) {
  ExpectBuilt({
      {"pixels from channels",
       13,
       "DepthToSpace",
       {Int("blocksize", 2)},
       {1, 8, 2, 3},
       "y/split [1,2,2,2,2,3] = reshape(x)\ny/moved [1,2,2,2,3,2] = transpose(y/split) "
       "order=[0,3,4,1,5,2]\ny [1,2,4,6] = reshape(y/moved)"},
  });
}

}  // namespace
}  // namespace tilewire::reader
