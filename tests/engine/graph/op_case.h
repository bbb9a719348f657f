// SPDX-License-Identifier: Apache-2.0
//
// A table's row about an operator: one node on one input, and the lines of the network it becomes.
#ifndef TESTS_ENGINE_GRAPH_OP_CASE_H_
#define TESTS_ENGINE_GRAPH_OP_CASE_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/graph/fixture.h"

namespace tilewire::graph {

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
    testing::OnnxBuilder model(c.opset);
    model.Input("x", c.src).Node(c.op, {"x"}, {"y"}, c.attributes).Output("y");
    const Dims dims(c.src.begin(), c.src.end());
    EXPECT_EQ(BuiltText(model, {dims}),
              "input x " + DimsToString(dims) + "\n" + c.expected + "\noutput y\n");
  }
}

}  // namespace tilewire::graph

#endif  // TESTS_ENGINE_GRAPH_OP_CASE_H_
