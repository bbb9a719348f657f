// SPDX-License-Identifier: Apache-2.0
//
// Operators that are one function of one tensor, element by element, with attributes for its
// parameters: the rows of engine/functions/functions.inc that name operators. Those that are more
// than such a row says are in activation.cc and unary.cc.
#include <algorithm>
#include <array>
#include <iterator>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/functions/onnx_functions.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

using functions::OnnxFunction;

absl::StatusOr<float> ReadParameter(const Node& node, absl::string_view name, float absent) {
  return name.empty() ? absent : node.Float(name, absent);
}

absl::Status BuildFunction(NodeContext& context) {
  const auto* const row = absl::c_find_if(
      functions::kOnnxFunctions,
      [&](const OnnxFunction& function) { return function.op == context.node.op(); });
  Elementwise function{row->function};
  ABSL_ASSIGN_OR_RETURN(function.alpha, ReadParameter(context.node, row->AlphaName(), row->alpha));
  ABSL_ASSIGN_OR_RETURN(function.beta, ReadParameter(context.node, row->BetaName(), row->beta));
  if (row->Is(OnnxFunction::kThroughReals)) return FinishThroughReals(context, function);
  return row->Is(OnnxFunction::kFolds) ? FinishElementwise(context, function)
                                       : FinishActivation(context, function);
}

constexpr bool IsOperator(const OnnxFunction& function) {
  return !function.Is(OnnxFunction::kOnlyInCells);
}
constexpr size_t kOperators =
    std::count_if(std::begin(functions::kOnnxFunctions), std::end(functions::kOnnxFunctions),
                  [](const OnnxFunction& function) { return IsOperator(function); });

constexpr std::array<OpRow, kOperators> MakeRows() {
  std::array<OpRow, kOperators> rows{};
  size_t i = 0;
  for (const OnnxFunction& function : functions::kOnnxFunctions) {
    if (!IsOperator(function)) continue;
    rows[i++] = {
        .name = function.op,
        .since = function.since,
        .min_inputs = 1,
        .max_inputs = 1,
        .attributes = function.attributes,
        .build = BuildFunction,
        .folds = function.Is(OnnxFunction::kFolds) ? Folds::kInMemory : Folds::kNever,
        .result_type = functions::IsPredicate(function.function) ? TruthValues : LikeFirstInput,
        .is_of_reals = function.Is(OnnxFunction::kOfReals)};
  }
  return rows;
}

constexpr std::array<OpRow, kOperators> kFunctionOperators = MakeRows();

}  // namespace

absl::Span<const OpRow> FunctionOperators() { return kFunctionOperators; }

}  // namespace tilewire::reader
