// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/op_table.cc become, and what they refuse.
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

using testing::Int;
using testing::Ints;

TEST(OpTableTest, Refusals) {
  ExpectRefused({
      {"unknown operator",
       "Einsum",
       {"x"},
       {},
       absl::StatusCode::kUnimplemented,
       "node 'node_y' (Einsum of ai.onnx, opset 13)"},
      {"attribute of the wrong type",
       "Conv",
       {"x", "w"},
       {Ints("group", {1})},
       absl::StatusCode::kInvalidArgument,
       "'group' has type INTS"},
      {"attribute it does not have",
       "Relu",
       {"x"},
       {Int("alpha", 1)},
       absl::StatusCode::kInvalidArgument,
       "unknown attribute 'alpha'"},
      {"too few inputs", "Conv", {"x"}, {}, absl::StatusCode::kInvalidArgument, "1 inputs"},
  });
}

}  // namespace
}  // namespace tilewire::graph
