// SPDX-License-Identifier: Apache-2.0
//
// What every operator is refused for (engine/graph/ops/op_table.cc).
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
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

}  // namespace
}  // namespace tilewire::graph
