// SPDX-License-Identifier: Apache-2.0
//
// Rows of the operators' tables: a node, and the lines of the network that it becomes or the error
// that it is refused with.
#ifndef TESTS_ENGINE_ONNX_OP_CASE_H_
#define TESTS_ENGINE_ONNX_OP_CASE_H_

#include <string>
#include <vector>

#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {

inline onnx::AttributeProto Graph(const std::string& name, OnnxBuilder body) {
  onnx::AttributeProto attribute = testing::Attribute(name, onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = body.graph();
  return attribute;
}

// A node on one input, x, of dims `src`.
struct OpCase {
  const char* why;
  int64_t opset;
  std::string op;
  std::vector<onnx::AttributeProto> attributes;
  std::vector<int64_t> src;
  const char* expected;  // the lines between "input" and "output"
};

inline void ExpectBuilt(const std::vector<OpCase>& cases) {
  for (const OpCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(c.opset);
    model.Input("x", c.src).Node(c.op, {"x"}, {"y"}, c.attributes).Output("y");
    const Dims dims(c.src.begin(), c.src.end());
    EXPECT_EQ(BuiltText(model, {dims}),
              "input x " + DimsToString(dims) + "\n" + c.expected + "\noutput y\n");
  }
}

// A node on `inputs`: names of x, whose dims are `x`, of z of [2,4,5], and of the constants that
// ExpectBuiltFrom() adds.
struct OperandsCase {
  const char* why;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  std::vector<int64_t> x;
  const char* expected;  // the lines between the inputs and "output"
};

inline void ExpectBuiltFrom(const std::vector<OperandsCase>& cases) {
  for (const OperandsCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(17);
    model.Input("x", c.x).Input("z", {2, 4, 5});
    model.Floats("row", {4}).Floats("rows", {3, 4}).Floats("stack", {2, 4, 5}).Floats("five", {5});
    model.Integers("two", {2});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    const Dims dims(c.x.begin(), c.x.end());
    EXPECT_EQ(BuiltText(model, {dims, {2, 4, 5}}),
              "input x " + DimsToString(dims) + "\ninput z [2,4,5]\n" + c.expected + "output y\n");
  }
}

// A node on `inputs`, names of what ExpectRefused() adds, and a part of the message that refuses
// the node. The message also holds the node's name.
struct RefusedCase {
  const char* why;
  std::string op;
  std::vector<std::string> inputs;
  std::vector<onnx::AttributeProto> attributes;
  const char* message;
  int64_t opset = 13;
};

inline void ExpectRefused(const std::vector<RefusedCase>& cases, absl::StatusCode code) {
  for (const RefusedCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(c.opset);
    model.Input("x", {1, 4, 8, 8}).Input("m", {2, 3}).Input("z", {2, 2, 3});
    model.Floats("w", {6, 4, 3, 3}).Integers("shape", {7});
    model.Floats("two", {2}).Integers("four", {4});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    EXPECT_THAT(Open(model),
                testing::StatusIs(code, AllOf(HasSubstr(c.message), HasSubstr("node_y"))));
  }
}
inline void ExpectInvalid(const std::vector<RefusedCase>& cases) {
  ExpectRefused(cases, absl::StatusCode::kInvalidArgument);
}
inline void ExpectUnimplemented(const std::vector<RefusedCase>& cases) {
  ExpectRefused(cases, absl::StatusCode::kUnimplemented);
}

}  // namespace tilewire::reader

#endif  // TESTS_ENGINE_ONNX_OP_CASE_H_
