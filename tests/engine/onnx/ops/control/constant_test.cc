// SPDX-License-Identifier: Apache-2.0
//
// The operator of engine/onnx/ops/control/constant.cc: its results and its refusals.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

using testing::Floats;

onnx::AttributeProto Tensor(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  onnx::AttributeProto attribute = testing::Attribute("value", onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) attribute.mutable_t()->add_dims(dim);
  for (float value : values) attribute.mutable_t()->add_float_data(value);
  return attribute;
}

TEST(ConstantTest, EveryFormOfFloats) {
  const struct {
    onnx::AttributeProto attribute;
    Elements sum;  // with 1 2 3 4
  } kCases[] = {
      {Float("value_float", 0.5f), {1.5, 2.5, 3.5, 4.5}},
      {Floats("value_floats", {10, 20}), {11, 22, 13, 24}},
      {Tensor({2, 1}, {10, 20}), {11, 12, 23, 24}},
  };
  for (const auto& c : kCases) {
    OnnxBuilder model;
    model.Input("x", {2, 2}).Node("Constant", {}, {"c"}, {c.attribute});
    model.Node("Add", {"x", "c"}, {"y"}).Output("y");
    EXPECT_EQ(Computed(model, {{2, 2}}, {{1, 2, 3, 4}})[0], c.sum) << c.attribute.name();
  }
}

TEST(ConstantTest, EveryFormOfIntegers) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("Constant", {}, {"shape"}, {Ints("value_ints", {3, -1})});
  model.Node("Reshape", {"x", "shape"}, {"tall"});
  model.Node("Constant", {}, {"row"}, {Int("value_int", 1)});
  model.Node("Gather", {"tall", "row"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 3}}, {{1, 2, 3, 4, 5, 6}})[0], Elements({3, 4}));
}

TEST(ConstantTest, Refusals) {
  ExpectInvalid({
      {"no value", "Constant", {}, {}, "needs exactly one value"},
      {"two values", "Constant", {}, {Int("value_int", 1), Float("value_float", 1)}, "exactly one"},
  });
  ExpectUnimplemented({
      {"text", "Constant", {}, {String("value_string", "a")}, "supported are numbers"},
  });
}

}  // namespace
}  // namespace tilewire::reader
