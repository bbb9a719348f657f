// SPDX-License-Identifier: Apache-2.0
//
// Shape arithmetic. By the time a network is specialised every shape is known, so these give
// constants; on tensors that are computed at run time only Shape and Size (which need no value)
// work.
#include <algorithm>
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// Folding is for shapes and the like.
constexpr int64_t kLargestFill = int64_t{1} << 24;

// Counted from 0, within [0, rank].
int64_t ClampAxis(int64_t axis, int64_t rank) {
  return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
}

absl::Status BuildShape(NodeContext& context) {
  const Dims& dims = context.input(0).dims;
  const int64_t rank = static_cast<int64_t>(dims.size());
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_start, context.node.Int("start", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_end, context.node.Int("end", rank));
  std::vector<int64_t> shape;
  for (int64_t i = ClampAxis(raw_start, rank), end = ClampAxis(raw_end, rank); i < end; ++i)
    shape.push_back(dims[i]);
  const int64_t count = static_cast<int64_t>(shape.size());
  return context.SetOutput(MakeInts(context.output_name(), {count}, std::move(shape)));
}

absl::Status BuildSize(NodeContext& context) {
  const std::optional<int64_t> count = ElementCount(context.input(0).dims);
  if (!count) return context.node.Invalid("the input is too large");
  return context.SetOutput(MakeInts(context.output_name(), {}, {*count}));
}

// The value is an attribute tensor of one element; without it, 0 as a float.
absl::Status BuildConstantOfShape(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr shape, context.Ints(0));
  ConstantPtr value = MakeFloats("", {1}, {0.0f});
  if (node.HasAttribute("value")) {
    ABSL_ASSIGN_OR_RETURN(value, TensorAttribute(context, "value"));
  }
  if (value->count() != 1) return node.Invalid("value is not one number");
  const Dims dims(shape->ints.begin(), shape->ints.end());
  for (int64_t dim : dims) {
    if (dim < 0) return node.Invalid("shape ", DimsToString(dims));
  }
  const std::optional<int64_t> count = ElementCount(dims);
  if (dims.size() > kMaxRank) return node.Invalid("rank ", dims.size());
  if (!count || *count > kLargestFill)
    return node.TooLarge("shape ", DimsToString(dims), "; supported are ", kLargestFill,
                         " elements");
  if (value->is_float)
    return context.SetOutput(
        MakeFloats(context.output_name(), dims, std::vector<float>(*count, value->floats[0])));
  return context.SetOutput(
      MakeInts(context.output_name(), dims, std::vector<int64_t>(*count, value->ints[0])));
}

absl::Status BuildRange(NodeContext& context) {
  const Node& node = context.node;
  for (int i = 0; i < 3; ++i) {
    if (context.input(i).constant == nullptr || context.input(i).constant->count() != 1)
      return node.Unimplemented("input ", i, " is computed at run time; it must be known at load");
  }
  const bool is_float = context.input(0).constant->is_float;
  double at[3];  // start, limit, delta
  for (int i = 0; i < 3; ++i) {
    const Constant& number = *context.input(i).constant;
    if (number.is_float != is_float) return node.Invalid("inputs of different types");
    at[i] = is_float ? number.floats[0] : static_cast<double>(number.ints[0]);
  }
  if (at[2] == 0 || std::isnan(at[2]))
    return node.Invalid("a step of ", at[2], ", which leads nowhere");
  if (!std::isfinite(at[0]) || std::isnan(at[1]))
    return node.Invalid("a range from ", at[0], " to ", at[1]);
  const double exact = std::ceil((at[1] - at[0]) / at[2]);
  if (!(exact <= kLargestFill)) return node.TooLarge("more than ", kLargestFill, " elements");
  const int64_t count = exact > 0 ? static_cast<int64_t>(exact) : 0;
  if (is_float) {
    std::vector<float> floats(count);
    for (int64_t i = 0; i < count; ++i)
      floats[i] = static_cast<float>(at[0] + static_cast<double>(i) * at[2]);
    return context.SetOutput(MakeFloats(context.output_name(), {count}, std::move(floats)));
  }
  std::vector<int64_t> ints(count);
  const int64_t start = context.input(0).constant->ints[0];
  const int64_t delta = context.input(2).constant->ints[0];
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<int64_t> step = CheckedMul(i, delta);
    const std::optional<int64_t> at_i = step ? CheckedAdd(start, *step) : std::nullopt;
    if (!at_i) return node.Invalid("integer overflow");
    ints[i] = *at_i;
  }
  return context.SetOutput(MakeInts(context.output_name(), {count}, std::move(ints)));
}

ElementType TypeOfFill(const TypedNode& node, int) { return node.tensor("value"); }

}  // namespace

TILEWIRE_OPERATORS(Shape) = {
    {"ConstantOfShape", 9, 1, 1, "value", BuildConstantOfShape, Folds::kInMemory, TypeOfFill,
     Inputs({0})},
    {"Range", 11, 3, 3, "", BuildRange, Folds::kInMemory, LikeFirstInput, Inputs({0, 1, 2})},
    TakesSmall({"Shape", 1, 1, 1, "end start", BuildShape, Folds::kInMemory, Indices}),
    TakesSmall({"Size", 1, 1, 1, "", BuildSize, Folds::kInMemory, Indices}),
};

}  // namespace tilewire::reader
