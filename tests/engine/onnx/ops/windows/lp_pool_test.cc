// SPDX-License-Identifier: Apache-2.0
//
// LpPool (engine/onnx/ops/windows/lp_pool.cc) against numbers that numpy computes.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

Elements Pooled(std::vector<onnx::AttributeProto> attributes) {
  OnnxBuilder model(18);
  model.Input("x", {1, 1, 3, 3});
  attributes.push_back(Ints("kernel_shape", {2, 2}));
  model.Node("LpPool", {"x"}, {"y"}, attributes).Output("y");
  return Computed(model, {{1, 1, 3, 3}}, {{1, -2, 3, 4, -5, 6, 7, 8, -9}})[0];
}

TEST(LpPoolTest, RootsOfSumsOfPowers) {
  ExpectNear(Pooled({Int("p", 1)}), {12, 16, 24, 28}, 1e-4);
  ExpectNear(Pooled({}), {6.78233, 8.60233, 12.4097, 14.3527}, 1e-4);
  ExpectNear(Pooled({Int("p", 3), Int("ceil_mode", 0), Ints("dilations", {1, 1})}),
             {5.82848, 7.21765, 10.1446, 11.652}, 1e-4);
  ExpectNear(Pooled({Ints("pads", {1, 0, 0, 0}), Ints("strides", {2, 1})}),
             {2.23607, 3.60555, 12.4097, 14.3527}, 1e-4);
}

TEST(LpPoolTest, Refusals) {
  const onnx::AttributeProto kernel = Ints("kernel_shape", {2, 2});
  ExpectInvalid({{"no root", "LpPool", {"x"}, {kernel, Int("p", 0)}, "p 0"},
                 {"early", "LpPool", {"x"}, {kernel, Ints("dilations", {1, 1})}, "opset 18"}});
  ExpectUnimplemented({{"ceil", "LpPool", {"x"}, {kernel, Int("ceil_mode", 1)}, "ceil_mode", 18}});
}

}  // namespace
}  // namespace tilewire::reader
