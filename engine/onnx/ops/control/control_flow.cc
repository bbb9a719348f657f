// SPDX-License-Identifier: Apache-2.0
//
// Operators that decide or repeat, where it is known at load what is chosen and how often it runs.
// Graphs in attributes are visited in the place of the node.
#include <algorithm>
#include <climits>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

constexpr absl::string_view kAdvice =
    "; export the model with fixed shapes, or have its constants folded (onnxsim)";

absl::StatusOr<const Body*> BodyOf(const Node& node, const std::string& attribute) {
  const auto body = node.bodies.find(attribute);
  if (body != node.bodies.end()) return body->second.get();
  return node.Invalid("attribute '", attribute, "' is missing");
}

// The only element of what must be known.
absl::StatusOr<int64_t> KnownNumber(const Node& node, const Operand& operand,
                                    absl::string_view what) {
  if (operand.constant == nullptr)
    return node.Unimplemented(what, " is computed at run time; it must be known at load", kAdvice);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(operand.constant));
  if (known->is_float || known->ints.size() != 1)
    return node.Invalid(what, " is not one integer or truth value");
  return known->ints[0];
}

absl::Status SetResults(NodeContext& context, const std::vector<Operand>& results) {
  for (size_t i = 0; i < context.node.outputs.size(); ++i) {
    if (context.node.outputs[i] == kNoTensor) continue;
    ABSL_RETURN_IF_ERROR(context.SetOutput(results[i], static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status BuildIf(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t condition,
                        KnownNumber(node, context.input(0), "the condition"));
  ABSL_ASSIGN_OR_RETURN(const Body* body,
                        BodyOf(node, condition != 0 ? "then_branch" : "else_branch"));
  if (!body->inputs.empty() || body->outputs.size() < node.outputs.size())
    return node.Invalid("a branch with ", body->inputs.size(), " inputs and ", body->outputs.size(),
                        " outputs");
  ABSL_ASSIGN_OR_RETURN(const std::vector<Operand> results, context.Visit(*body, {}));
  return SetResults(context, results);
}

// The data that runs of a loop's body have in common: `states` go from run to run, `scans` are
// gathered.
struct LoopRun {
  std::vector<Operand> states;
  std::vector<std::vector<Operand>> scans;
};

Operand OneNumber(const NodeContext& context, absl::string_view suffix, int64_t number) {
  return OperandOf(MakeInts(absl::StrCat(context.output_name(), suffix), {}, {number}));
}

// Runs the body until the count or its condition ends it.
absl::Status RunLoop(NodeContext& context, const Body& body, LoopRun* run) {
  const Node& node = context.node;
  int64_t count = std::numeric_limits<int64_t>::max();
  if (context.Has(0)) {
    ABSL_ASSIGN_OR_RETURN(count, KnownNumber(node, context.input(0), "the trip count"));
  }
  // The refusal that Visit() would give after as many visits as it allows.
  const int64_t nodes = static_cast<int64_t>(body.nodes.size()) + 1;
  if (!context.Has(1) && count > kMostVisits / nodes) return LoopsTooLong(node);
  int64_t goes_on = 1;
  if (context.Has(1)) {
    ABSL_ASSIGN_OR_RETURN(goes_on, KnownNumber(node, context.input(1), "the condition"));
  }
  for (int64_t i = 0; i < count && goes_on != 0; ++i) {
    const std::string suffix = absl::StrCat("/run", i);
    std::vector<Operand> inputs = {OneNumber(context, suffix, i),
                                   OneNumber(context, absl::StrCat(suffix, "/goes_on"), 1)};
    inputs.insert(inputs.end(), run->states.begin(), run->states.end());
    ABSL_ASSIGN_OR_RETURN(const std::vector<Operand> results, context.Visit(body, inputs, suffix));
    // Without the input, the body's condition means nothing.
    if (context.Has(1)) {
      ABSL_ASSIGN_OR_RETURN(goes_on, KnownNumber(node, results[0], "the body's condition"));
    }
    const size_t states = run->states.size();
    std::copy_n(results.begin() + 1, states, run->states.begin());
    for (size_t s = 0; s < run->scans.size(); ++s) run->scans[s].push_back(results[1 + states + s]);
  }
  return absl::OkStatus();
}

// The results of all runs, one after the other along a new first dimension.
absl::StatusOr<Operand> Stacked(NodeContext& context, const std::vector<Operand>& results, int i) {
  if (results.empty())
    return context.node.Unimplemented("a loop that gathers results and never runs");
  std::vector<Operand> rows;
  for (const Operand& result : results) {
    if (result.sequence != nullptr) return context.node.Invalid("a loop that gathers sequences");
    Dims dims = result.dims;
    dims.insert(dims.begin(), 1);
    ABSL_ASSIGN_OR_RETURN(
        Operand& row = rows.emplace_back(),
        ReshapeOf(context, result, std::move(dims), absl::StrCat("/", i, "/row", rows.size())));
    row.is_integer = result.is_integer;
  }
  return ConcatOf(context, rows, 0, absl::StrCat("/", i, "/rows"));
}

absl::Status BuildLoop(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const Body* body, BodyOf(node, "body"));
  LoopRun run;
  for (int i = 2; i < context.input_count(); ++i) {
    if (!context.Has(i)) return node.Invalid("input ", i, " is missing");
    run.states.push_back(context.input(i));
  }
  const size_t states = run.states.size();
  if (body->inputs.size() != states + 2 || body->outputs.size() < states + 1 ||
      node.outputs.size() > body->outputs.size() - 1)
    return node.Invalid("a body with ", body->inputs.size(), " inputs and ", body->outputs.size(),
                        " outputs");
  run.scans.resize(body->outputs.size() - 1 - states);
  ABSL_RETURN_IF_ERROR(RunLoop(context, *body, &run));
  std::vector<Operand> results = std::move(run.states);
  for (size_t i = states; i < node.outputs.size(); ++i) {
    results.emplace_back();
    if (node.outputs[i] == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN(results.back(),
                          Stacked(context, run.scans[i - states], static_cast<int>(i)));
  }
  return SetResults(context, results);
}

ElementType OfBranch(const TypedNode& node, int i) { return node.body_output("then_branch", i); }

// The body's first output is its condition.
ElementType OfBody(const TypedNode& node, int i) { return node.body_output("body", i + 1); }

}  // namespace

TILEWIRE_OPERATORS(ControlFlow) = {
    {"If", 1, 1, 1, "else_branch then_branch", BuildIf, Folds::kNever, OfBranch, Inputs({0})},
    TakesSmall(OfSequences(Late({"Loop", 1, 0, INT_MAX, "body", BuildLoop, Folds::kNever, OfBody,
                                 Inputs({0, 1})}))),
};

}  // namespace tilewire::reader
