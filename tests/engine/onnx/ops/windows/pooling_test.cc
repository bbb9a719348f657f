// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/windows/pooling.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(PoolingTest, Maximum) {
  ExpectBuilt({
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
  });
}

TEST(PoolingTest, AverageAndGlobal) {
  ExpectBuilt({
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
      {"counted padding, and a window that ceil_mode adds",
       13,
       "AveragePool",
       {Ints("kernel_shape", {3}), Ints("strides", {2}), Ints("pads", {1, 1}), Int("ceil_mode", 1),
        Int("count_include_pad", 1)},
       {1, 4, 6},
       "y/padded [1,4,8] = select(x) 2:fill(0) x1+0 x6+fill(0) x1\n"
       "y [1,4,4] = avg_exclude_padding(y/padded) kernel=[3] strides=[2] pads=[0],[1]"},
  });
}

TEST(PoolingTest, SeveralOperands) {
  ExpectBuiltFrom({
      {"dilated maximum",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {2, 1}), Ints("dilations", {3, 1}), Ints("pads", {1, 0, 0, 0})},
       {1, 2, 5, 4},
       "y/tap0.0 [1,2,3,4] = select(x) 2:fill(-inf) x1+0 x2\n"
       "y/tap0.1 [1,2,3,4] = select(x) 2:2 x3\n"
       "y [1,2,3,4] = max(y/tap0.0, y/tap0.1)\n"},
  });
}

TEST(PoolingTest, MaxPoolSaysWhereMaximaStand) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 6, 6});
  model.Node("MaxPool", {"x"}, {"a", "i"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Node("MaxPool", {"x"}, {"b", "j"},
             {Ints("kernel_shape", {2, 1}), Ints("dilations", {3, 1}), Int("storage_order", 1),
              Ints("pads", {1, 0, 0, 0})});
  model.Output("a").Output("i").Output("j");
  const std::string text = BuiltText(model, {{1, 2, 6, 6}});
  EXPECT_THAT(text, HasSubstr("i [1,2,3,3] = max_window(x) index kernel=[2,2] strides=[2,2]\n"
                              "a [1,2,3,3] = max_pooling(x) kernel=[2,2] strides=[2,2]\n"));
  EXPECT_THAT(text, HasSubstr("j [1,2,4,6] = max_window(x) column_major_index kernel=[2,1] "
                              "dilations=[2,0] pads=[1,0]\n"));
}

TEST(PoolingTest, Refusals) {
  ExpectInvalid({
      {"kernel larger than the source",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {9, 9})},
       "does not fit"},
      {"a dilated window larger than the source",
       "MaxPool",
       {"z"},
       {Ints("kernel_shape", {2}), Ints("dilations", {4})},
       "does not fit"},
  });
  ExpectUnimplemented({
      {"padding of a whole window",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {2, 2}), Ints("pads", {2, 0, 0, 0})},
       "padding alone: of 2 elements, padded by 2 and 0"},
      {"a last window in the padding",
       "AveragePool",
       {"x"},
       {Ints("kernel_shape", {2, 2}), Ints("pads", {0, 0, 0, 2})},
       "padding alone: of 2 elements, padded by 0 and 2"},
  });
}

}  // namespace
}  // namespace tilewire::reader
