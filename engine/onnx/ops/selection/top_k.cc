// SPDX-License-Identifier: Apache-2.0
//
// The best elements along an axis, and their indices: TopK, ArgMax, ArgMin. Elements keep their
// type; indices are computed as f32.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// An attribute before opset 10.
absl::StatusOr<int64_t> ReadCount(const NodeContext& context, int64_t size) {
  int64_t count = 0;
  if (context.node.opset() < 10) {
    ABSL_ASSIGN_OR_RETURN(count, context.node.Int("k", 0));
  } else {
    if (!context.Has(1)) return context.node.Invalid("input 1 is missing");
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr k, context.Ints(1));
    if (k->count() != 1) return context.node.Invalid("k is not one number");
    count = k->ints[0];
  }
  if (count < 0 || count > size)
    return context.node.Invalid("k ", count, " of ", size, " elements");
  return count;
}

absl::Status BuildArg(NodeContext& context, bool largest) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t keep_dims, node.Int("keepdims", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t last, node.Int("select_last_index", 0));
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.RuntimeOfAnyType(0));
  Dims dims = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 0, dims.size()));
  ABSL_RETURN_IF_ERROR(CheckCountable(node, dims[axis]));
  dims[axis] = 1;
  const bool drops = keep_dims == 0;
  ABSL_ASSIGN_OR_RETURN(const ValueId kept,
                        context.Emit(network::TopK{axis, largest, /*indices=*/true,
                                                   /*last_of_equals=*/last != 0},
                                     {src}, dims, drops ? "/kept" : ""));
  if (!drops) return context.SetOutput(kept);
  Dims left = dims;
  left.erase(left.begin() + axis);
  return context.SetOutput(context.EmitReshape(kept, std::move(left)));
}

absl::Status BuildArgMax(NodeContext& context) { return BuildArg(context, /*largest=*/true); }
absl::Status BuildArgMin(NodeContext& context) { return BuildArg(context, /*largest=*/false); }

absl::Status BuildTopK(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.RuntimeOfAnyType(0));
  Dims dims = context.input(0).dims;
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, -1, dims.size()));
  ABSL_RETURN_IF_ERROR(CheckCountable(node, dims[axis]));
  ABSL_ASSIGN_OR_RETURN(dims[axis], ReadCount(context, dims[axis]));
  for (int i = 0; i < static_cast<int>(node.outputs.size()) && i < 2; ++i) {
    if (node.outputs[i] == kNoTensor) continue;
    const DataType type = i == 1 ? DataType::kF32 : context.value(src).type;
    ABSL_ASSIGN_OR_RETURN(const ValueId part,
                          context.Emit(network::TopK{axis, largest != 0, i == 1}, {src}, dims,
                                       i == 1 ? "/indices" : "", type));
    ABSL_RETURN_IF_ERROR(context.SetOutput(Operand{nullptr, part, dims}, i));
  }
  return absl::OkStatus();
}

}  // namespace

TILEWIRE_OPERATORS(TopK) = {
    {"ArgMax", 1, 1, 1, "axis keepdims select_last_index", BuildArgMax, Folds::kNever, Indices},
    {"ArgMin", 1, 1, 1, "axis keepdims select_last_index", BuildArgMin, Folds::kNever, Indices},
    {"TopK", 1, 1, 2, "axis k largest sorted", BuildTopK, Folds::kNever, IndicesAfterFirst,
     Inputs({1})},
};

}  // namespace tilewire::reader
