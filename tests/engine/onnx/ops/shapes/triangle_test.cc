// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(TriangleTest, TriluTakesZerosOutsideOfOneSide) {
  ExpectBuilt({{"the upper side",
                14,
                "Trilu",
                {},
                {2, 3},
                "y/y/kept [2,3] = literal() elements=6\n"
                "y/y/zero [1] = literal() elements=1\n"
                "y [2,3] = where(y/y/kept, x, y/y/zero)"}});
}

TEST(TriangleTest, EyeLikeReadsNoElement) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("EyeLike", {"x"}, {"y"}, {Int("k", -1)}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{0, 0, 0, 1, 0, 0}}));
}

TEST(TriangleTest, Refusals) {
  ExpectInvalid({
      {"of rank 4", "EyeLike", {"x"}, {}, "rank 4"},
      {"of a vector", "Trilu", {"two"}, {}, "rank 1", 14},
      {"many diagonals", "Trilu", {"x", "w"}, {}, "input 1 is not of integers", 14},
  });
}

}  // namespace
}  // namespace tilewire::reader
