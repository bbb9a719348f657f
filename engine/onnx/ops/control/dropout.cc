// SPDX-License-Identifier: Apache-2.0
//
// dst = src * mask; a mask is 0 where an element is dropped and 1 / (1 - ratio) where it is kept.
//
// For inference nothing is dropped unless training_mode says so; the mask is then known when the
// network is built, and is that of ONNX's reference implementation: numpy's RandomState(seed)
// draws a number in [0, 1) per element, and drops those below the ratio. In a network of an update
// every node drops unless training_mode is false, by a mask that the trainer draws anew each time.
// An evaluation drops nothing.
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The truth value training_mode; nullopt where the node does not have it.
absl::StatusOr<std::optional<bool>> TrainingMode(const NodeContext& context) {
  if (!context.Has(2)) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr training, context.Ints(2));
  if (training->count() != 1) return context.node.Invalid("training_mode is not one truth value");
  return training->ints[0] != 0;
}

// An input since opset 12, an attribute before.
absl::StatusOr<float> RatioOf(const NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(float ratio, context.node.Float("ratio", 0.5f));
  if (context.Has(1)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, context.Floats(1));
    if (given->count() != 1) return context.node.Invalid("ratio is not one number");
    ratio = given->floats[0];
  }
  if (ratio >= 0 && ratio < 1) return ratio;
  return context.node.Invalid("ratio is ", ratio, "; allowed: 0 to below 1");
}

// The share that this network drops.
absl::StatusOr<float> RatioDropped(const NodeContext& context, std::optional<bool> mode) {
  const TrainingPurpose* purpose = context.training();
  const bool drops =
      purpose != nullptr ? purpose->drops && mode.value_or(true) : mode.value_or(false);
  if (!drops || ElementCount(context.input(0).dims) == 0) return 0.0f;
  return RatioOf(context);
}

// The mask of ONNX's reference implementation; a node without a seed has 0.
absl::StatusOr<Operand> KnownMask(const NodeContext& context, float ratio) {
  const Dims dims = context.input(0).dims;
  const int64_t count = ElementCount(dims).value_or(kLargestFold + 1);
  if (count > kLargestFold)
    return context.node.TooLarge("a mask of more than ", kLargestFold, " elements");
  ABSL_ASSIGN_OR_RETURN(const int64_t seed, context.node.Int("seed", 0));
  std::mt19937 generator(static_cast<uint32_t>(seed));
  const auto kept = static_cast<float>(1 / (1 - static_cast<double>(ratio)));
  std::vector<float> mask(count);
  for (float& element : mask) {
    // 53 bits of two words.
    const uint32_t high = generator() >> 5;
    const uint32_t low = generator() >> 6;
    const double drawn = (high * 0x1p26 + low) * 0x1p-53;
    element = drawn >= ratio ? kept : 0;
  }
  return context.KnownFloats("/drawn", dims, std::move(mask));
}

absl::StatusOr<Operand> DrawnMask(NodeContext& context, float ratio) {
  network::DropoutMask mask{.ratio = ratio};
  if (context.node.HasAttribute("seed")) {
    ABSL_ASSIGN_OR_RETURN(const int64_t seed, context.node.Int("seed", 0));
    mask.seed = static_cast<uint64_t>(seed);
  }
  const Dims dims = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(const ValueId drawn, context.AddMask(mask, dims));
  return Operand{nullptr, drawn, dims};
}

// Output 1 where nothing is dropped.
absl::Status KeepEverything(NodeContext& context) {
  const Operand src = context.input(0);
  const Dims single(src.dims.size(), 1);
  const std::string name = absl::StrCat(context.output_name(), "/kept");
  Operand one = OperandOf(MakeInts(name, single, {1}));
  if (src.constant == nullptr) {
    network::Literal literal{MakeFloats(name, single, {1})};
    ABSL_ASSIGN_OR_RETURN(one, context.EmitOperand(std::move(literal), {}, single, "/kept"));
  }
  Select select = WholeOf(single.size());
  for (size_t d = 0; d < single.size(); ++d) {
    if (src.dims[d] != 1) select.from[d] = {{0, 0, src.dims[d]}};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand mask, SelectOf(context, one, std::move(select), "/mask"));
  return context.SetOutput(mask, 1);
}

absl::Status Drop(NodeContext& context, const Operand& mask) {
  if (context.IsInteger(0)) return context.node.Invalid("drops real numbers, and gets integers");
  if (context.node.HasOutput(1)) {
    const Operand zero = context.KnownFloat("/zero", 0);
    ABSL_ASSIGN_OR_RETURN(const Operand kept, ElementwiseOf(context, {.function = Function::kLess},
                                                            {zero, mask}, "/kept"));
    ABSL_RETURN_IF_ERROR(context.SetOutput(kept, 1));
  }
  return context.SetOutput(
      ElementwiseOf(context, {.function = Function::kMul}, {context.input(0), mask}));
}

absl::Status BuildDropout(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const std::optional<bool> mode, TrainingMode(context));
  ABSL_ASSIGN_OR_RETURN(const float ratio, RatioDropped(context, mode));
  if (ratio == 0) {
    if (context.node.HasOutput(1)) ABSL_RETURN_IF_ERROR(KeepEverything(context));
    return context.SetOutput(context.input(0));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand mask, context.training() == nullptr
                                                ? KnownMask(context, ratio)
                                                : DrawnMask(context, ratio));
  return Drop(context, mask);
}

ElementType MaskAfterFirst(const TypedNode& node, int i) {
  return i == 0 ? node.input(0) : ElementType(DataType::kBool);
}

}  // namespace

TILEWIRE_OPERATORS(Dropout) = {
    TrainsFirst({"Dropout", 1, 1, 3, "is_test ratio seed", BuildDropout, Folds::kInMemory,
                 MaskAfterFirst, Inputs({1, 2})}),
};

}  // namespace tilewire::reader
