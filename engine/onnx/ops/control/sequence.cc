// SPDX-License-Identifier: Apache-2.0
//
// Sequences of tensors whose length is known when a network is built. The
// network has no value for one: an operand lists the tensors, and what takes one out, or joins
// them, reads these.
#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The tensors of a sequence.
using Elements = std::vector<Operand>;

// Each operator that adds a tensor copies the list.
constexpr size_t kLongest = 4096;

absl::Status SetSequence(NodeContext& context, Elements tensors) {
  if (tensors.size() > kLongest)
    return context.node.Unimplemented("a sequence of more than ", kLongest, " tensors");
  Operand sequence;
  sequence.sequence = std::make_shared<const Elements>(std::move(tensors));
  return context.SetOutput(sequence);
}

absl::StatusOr<const Elements*> SequenceOf(const NodeContext& context, int i) {
  const Operand& given = context.input(i);
  if (given.sequence == nullptr) return context.node.Invalid("input ", i, " is not a sequence");
  return given.sequence.get();
}

absl::Status CheckTensor(const NodeContext& context, int i) {
  if (context.input(i).sequence == nullptr) return absl::OkStatus();
  return context.node.Invalid("input ", i, " is a sequence of tensors");
}

// Input `i`, which counts tensors from the end if it is negative; `absent` where it is left out.
absl::StatusOr<int64_t> PositionOf(const NodeContext& context, int i, int64_t size,
                                   int64_t absent) {
  if (!context.Has(i)) return absent;
  ABSL_RETURN_IF_ERROR(CheckTensor(context, i));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr position, context.Ints(i));
  if (position->count() != 1) return context.node.Invalid("a position that is not one number");
  return NormalizeIndex(context.node, position->ints[0], size, i, 0);
}

absl::Status BuildSequenceEmpty(NodeContext& context) { return SetSequence(context, {}); }

absl::Status BuildSequenceConstruct(NodeContext& context) {
  Elements tensors;
  for (int i = 0; i < context.input_count(); ++i) {
    ABSL_RETURN_IF_ERROR(CheckTensor(context, i));
    tensors.push_back(context.input(i));
  }
  return SetSequence(context, std::move(tensors));
}

absl::Status BuildSequenceInsert(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Elements* before, SequenceOf(context, 0));
  ABSL_RETURN_IF_ERROR(CheckTensor(context, 1));
  const auto size = static_cast<int64_t>(before->size());
  int64_t at = size;
  // The end is a position, too, and -1 is the one before the last tensor.
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, context.Ints(2));
    const bool is_end = given->count() == 1 && given->ints[0] == size;
    if (!is_end) {
      ABSL_ASSIGN_OR_RETURN(at, PositionOf(context, 2, size, size));
    }
  }
  Elements tensors = *before;
  tensors.insert(tensors.begin() + at, context.input(1));
  return SetSequence(context, std::move(tensors));
}

absl::Status BuildSequenceErase(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Elements* before, SequenceOf(context, 0));
  const auto size = static_cast<int64_t>(before->size());
  if (size == 0) return context.node.Invalid("of an empty sequence");
  ABSL_ASSIGN_OR_RETURN(const int64_t at, PositionOf(context, 1, size, size - 1));
  Elements tensors = *before;
  tensors.erase(tensors.begin() + at);
  return SetSequence(context, std::move(tensors));
}

absl::Status BuildSequenceAt(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Elements* tensors, SequenceOf(context, 0));
  const auto size = static_cast<int64_t>(tensors->size());
  if (size == 0) return context.node.Invalid("of an empty sequence");
  ABSL_ASSIGN_OR_RETURN(const int64_t at, PositionOf(context, 1, size, 0));
  return context.SetOutput(Operand((*tensors)[at]));
}

absl::Status BuildSequenceLength(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Elements* tensors, SequenceOf(context, 0));
  return context.SetOutput(
      MakeInts(context.output_name(), {}, {static_cast<int64_t>(tensors->size())}));
}

absl::Status BuildConcatFromSequence(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const Elements* tensors, SequenceOf(context, 0));
  if (tensors->empty()) return node.Invalid("of an empty sequence");
  if (!node.HasAttribute("axis")) return node.Invalid("attribute 'axis' is missing");
  ABSL_ASSIGN_OR_RETURN(const int64_t new_axis, node.Int("new_axis", 0));
  const size_t rank = (*tensors)[0].dims.size() + (new_axis != 0 ? 1 : 0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 0, rank));
  if (new_axis == 0) return context.SetOutput(ConcatOf(context, *tensors, axis));
  Elements raised;
  for (const Operand& tensor : *tensors) {
    if (tensor.dims.size() + 1 != rank) return node.Invalid("tensors of different ranks");
    Dims dims = tensor.dims;
    dims.insert(dims.begin() + axis, 1);
    ABSL_ASSIGN_OR_RETURN(raised.emplace_back(), ReshapeOf(context, tensor, std::move(dims),
                                                           absl::StrCat("/raised", raised.size())));
    raised.back().is_integer = tensor.is_integer;
  }
  return context.SetOutput(ConcatOf(context, raised, axis));
}

// Sizes of parts along a dimension of `size`: input 1 lists them, or is one size of all but the
// last; 1 where it is left out.
absl::StatusOr<std::vector<int64_t>> PartsOf(const NodeContext& context, int64_t size) {
  int64_t each = 1;
  if (context.Has(1)) {
    ABSL_RETURN_IF_ERROR(CheckTensor(context, 1));
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr split, context.Ints(1));
    if (!split->dims.empty()) return split->ints;
    each = split->ints[0];
  }
  if (each < 1) return context.node.Invalid("parts of ", each);
  if (size / each > static_cast<int64_t>(kLongest))
    return context.node.Unimplemented("a sequence of more than ", kLongest, " tensors");
  std::vector<int64_t> parts;
  for (int64_t start = 0; start < size; start += each)
    parts.push_back(std::min(each, size - start));
  return parts;
}

absl::Status BuildSplitToSequence(NodeContext& context) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckTensor(context, 0));
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 0, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const int64_t keepdims, node.Int("keepdims", 1));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> parts, PartsOf(context, src.dims[axis]));
  Elements tensors;
  int64_t start = 0;
  for (const int64_t part : parts) {
    if (part < 0 || part > src.dims[axis] - start)
      return node.Invalid("a part of ", part, " in ", DimsToString(src.dims));
    const std::string suffix = absl::StrCat("/part", tensors.size());
    ABSL_ASSIGN_OR_RETURN(Operand tensor,
                          SelectAlong(context, src, axis, {{start, 1, part}}, suffix));
    start += part;
    if (keepdims == 0 && !context.Has(1)) {
      Dims dims = tensor.dims;
      dims.erase(dims.begin() + axis);
      ABSL_ASSIGN_OR_RETURN(tensor, ReshapeOf(context, tensor, std::move(dims), suffix + "/flat"));
    }
    tensor.is_integer = context.IsInteger(0);
    tensors.push_back(std::move(tensor));
  }
  if (start != src.dims[axis])
    return node.Invalid("parts of ", start, " in all of ", DimsToString(src.dims));
  return SetSequence(context, std::move(tensors));
}

// Sequences have the type of their tensors.
ElementType NamedType(const TypedNode& node, int) { return node.named("dtype", DataType::kF32); }

}  // namespace

TILEWIRE_OPERATORS(Sequence) = {
    OfSequences({"ConcatFromSequence", 11, 1, 1, "axis new_axis", BuildConcatFromSequence}),
    OfSequences({"SequenceAt", 11, 2, 2, "", BuildSequenceAt, Folds::kNever, LikeFirstInput,
                 Inputs({1})}),
    OfSequences({"SequenceConstruct", 11, 1, INT_MAX, "", BuildSequenceConstruct}),
    OfSequences({"SequenceEmpty", 11, 0, 0, "dtype", BuildSequenceEmpty, Folds::kNever, NamedType}),
    OfSequences({"SequenceErase", 11, 1, 2, "", BuildSequenceErase, Folds::kNever, LikeFirstInput,
                 Inputs({1})}),
    OfSequences({"SequenceInsert", 11, 2, 3, "", BuildSequenceInsert, Folds::kNever,
                 LikeSecondInput, Inputs({2})}),
    OfSequences({"SequenceLength", 11, 1, 1, "", BuildSequenceLength, Folds::kNever, Indices}),
    OfSequences({"SplitToSequence", 11, 1, 2, "axis keepdims", BuildSplitToSequence, Folds::kNever,
                 LikeFirstInput, Inputs({1})}),
};

}  // namespace tilewire::reader
