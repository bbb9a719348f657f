// SPDX-License-Identifier: Apache-2.0
//
// The operators that are supported: one row each. What is not in the table is refused when a model
// is opened.
#ifndef ENGINE_GRAPH_OPS_OP_TABLE_H_
#define ENGINE_GRAPH_OPS_OP_TABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/node.h"
#include "engine/graph/specialization.h"

namespace tilewire::graph {

struct OpRow {
  absl::string_view name;  // ONNX's, of the default domain
  int min_inputs;
  int max_inputs;
  absl::string_view attributes;  // all that it may have, in any opset, with blanks between
  bool folds;                    // gives a constant where all inputs are constants
  absl::Status (*build)(NodeContext& context);
  bool reads_in_place = false;  // folds large constants without their elements in memory
};

absl::Span<const OpRow> OpTable();

// The row of a node that CheckSupported() accepted.
const OpRow* FindOp(const Node& node);

//   kUnimplemented    operator or domain without a row; the message names node, operator, domain
//   and opset kInvalidArgument  too many or too few inputs, no output, attributes that the operator
//   does not have
absl::Status CheckSupported(const Node& node);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_OP_TABLE_H_
