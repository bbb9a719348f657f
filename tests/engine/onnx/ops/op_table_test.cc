// SPDX-License-Identifier: Apache-2.0
//
// Refusals that every operator shares (engine/onnx/ops/op_table.cc).
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(OpTableTest, Refusals) {
  ExpectUnimplemented({
      {"unknown operator", "Unheard", {"x"}, {}, "node 'node_y' (Unheard of ai.onnx, opset 13)"},
  });
  ExpectInvalid({
      {"attribute of the wrong type",
       "Conv",
       {"x", "w"},
       {Ints("group", {1})},
       "'group' has type INTS"},
      {"attribute it does not have", "Relu", {"x"}, {Int("alpha", 1)}, "unknown attribute 'alpha'"},
      {"too few inputs", "Conv", {"x"}, {}, "1 inputs"},
  });
}

// ONNX gives them no integers; sums and functions of integers would wrap around or be cut.
TEST(OpTableTest, OperatorsOfRealNumbersTakeNoIntegers) {
  struct Case {
    const char* op;
    std::vector<std::string> inputs;
    std::vector<onnx::AttributeProto> attributes;
  };
  const Case cases[] = {
      {"AveragePool", {"x"}, {Ints("kernel_shape", {2, 2})}},
      {"GlobalLpPool", {"x"}, {Int("p", 1)}},
      {"Hardmax", {"x"}, {}},
      {"InstanceNormalization", {"x", "two", "two"}, {}},
      {"LayerNormalization", {"x", "row"}, {}},
      {"Log", {"x"}, {}},
      {"LogSoftmax", {"x"}, {}},
      {"LpNormalization", {"x"}, {Int("p", 1)}},
      {"LpPool", {"x"}, {Int("p", 1), Ints("kernel_shape", {2, 2})}},
      {"Mean", {"x", "x"}, {}},
      {"MeanVarianceNormalization", {"x"}, {}},
      {"Reciprocal", {"x"}, {}},
      {"Selu", {"x"}, {}},
      {"Softmax", {"x"}, {}},
  };
  for (const Case& c : cases) {
    for (const auto type : {onnx::TensorProto::UINT8, onnx::TensorProto::UINT16,
                            onnx::TensorProto::INT64, onnx::TensorProto::BOOL}) {
      SCOPED_TRACE(absl::StrCat(c.op, " of type ", type));
      OnnxBuilder model(21);
      model.Input("x", {1, 2, 4, 4}, type).Floats("row", {4}).Floats("two", {2});
      model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y", type);
      EXPECT_THAT(Open(model), testing::StatusIs(absl::StatusCode::kUnimplemented,
                                                 HasSubstr("here; supported are f32")));
    }
  }
}

}  // namespace
}  // namespace tilewire::reader
