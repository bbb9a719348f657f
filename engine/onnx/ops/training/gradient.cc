// SPDX-License-Identifier: Apache-2.0
//
// The gradient of the sum of a tensor's elements by other tensors, all of which attributes name:
// `y` by each of `xs`, while `zs` stay as they are. Inputs are the values of xs and zs. Source:
// ONNX's document of ai.onnx.preview.training, opset 1.
#include <climits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// How many tensors xs names: the first inputs. Captured are y, xs and zs, in this order.
absl::StatusOr<size_t> CountOfXs(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> xs, node.Strings("xs"));
  if (xs.empty()) return node.Invalid("xs names no tensor");
  if (node.captures.empty()) return node.Invalid("y names no tensor");
  if (absl::MakeConstSpan(node.captures).subspan(1) == absl::MakeConstSpan(node.inputs))
    return xs.size();
  return node.Unimplemented("inputs other than the tensors that xs and zs name, in their order");
}

absl::StatusOr<ValueId> RealValue(NodeContext& context, TensorId id) {
  const Operand& operand = context.tensor(id);
  if (operand.value == kNoValue)
    return context.node.Unimplemented("'", context.tensor_name(id),
                                      "' is known when the model is loaded");
  if (context.TypeOf(operand) == DataType::kF32 && !IsInteger(operand)) return operand.value;
  return context.node.Unimplemented("'", context.tensor_name(id), "' is not of f32, f16 or bf16");
}

absl::Status BuildGradient(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const size_t count_of_xs, CountOfXs(node));
  ABSL_ASSIGN_OR_RETURN(const ValueId y, RealValue(context, node.captures[0]));
  std::vector<ValueId> all;
  for (TensorId id : node.inputs) {
    ABSL_ASSIGN_OR_RETURN(all.emplace_back(), RealValue(context, id));
  }
  const std::vector<ValueId> xs(all.begin(), all.begin() + static_cast<int64_t>(count_of_xs));
  ABSL_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients, context.Differentiate(y, xs, all));
  for (int i = 0; i < static_cast<int>(xs.size()); ++i) {
    if (!node.HasOutput(i)) continue;
    const Dims dims = context.value(xs[i]).dims;
    if (gradients[i] != kNoValue) {
      ABSL_RETURN_IF_ERROR(context.SetOutput(Operand{nullptr, gradients[i], dims}, i));
      continue;
    }
    const int64_t count = ElementCount(dims).value_or(kLargestFold + 1);
    if (count > kLargestFold)
      return node.TooLarge("a gradient of zeros of more than ", kLargestFold, " elements");
    const Operand zeros =
        context.KnownFloats(absl::StrCat("/zeros", i), dims, std::vector<float>(count, 0));
    ABSL_RETURN_IF_ERROR(context.SetOutput(zeros, i));
  }
  return absl::OkStatus();
}

ElementType LikeInput(const TypedNode& node, int i) { return node.input(i); }

constexpr OpRow ThatNamesTensors(OpRow row) {
  row.names_tensors = true;
  return row;
}

}  // namespace

TILEWIRE_OPERATORS(Gradient) = {
    ThatNamesTensors({"ai.onnx.preview.training.Gradient", 1, 1, INT_MAX, "xs y zs", BuildGradient,
                      Folds::kNever, LikeInput}),
};

}  // namespace tilewire::reader
