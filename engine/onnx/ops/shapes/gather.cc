// SPDX-License-Identifier: Apache-2.0
//
// Gather: dst = src[..., indices, ...] along one axis. Constant indices make it a selection;
// computed ones need an operation of its own.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

Dims GatheredDims(const Dims& src, const Dims& indices, int axis) {
  Dims dst(src.begin(), src.begin() + axis);
  dst.insert(dst.end(), indices.begin(), indices.end());
  dst.insert(dst.end(), src.begin() + axis + 1, src.end());
  return dst;
}

absl::StatusOr<Operand> GatherComputed(NodeContext& context, const Operand& src,
                                       const Operand& indices, int axis, absl::string_view suffix) {
  const DataType type = context.TypeOf(indices);
  const bool is_exact = type == DataType::kS32 || type == DataType::kS64;
  if (!is_exact) ABSL_RETURN_IF_ERROR(CheckCountable(context.node, src.dims[axis]));
  ValueId elements = src.value;
  if (elements == kNoValue) {
    ABSL_ASSIGN_OR_RETURN(elements, context.Numbers(src));
  }
  ValueId at = indices.value;
  if (!is_exact) {
    ABSL_ASSIGN_OR_RETURN(at, context.Numbers(indices));
  }
  Dims dims = GatheredDims(src.dims, indices.dims, axis);
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        context.Emit(network::Gather{axis}, {elements, at}, dims, suffix));
  return Operand{nullptr, dst, std::move(dims), src.is_integer};
}

absl::Status BuildGather(NodeContext& context) {
  const Operand& src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(context.node, 0, src.dims.size()));
  return context.SetOutput(GatherOf(context, src, context.input(1), axis));
}

}  // namespace

absl::StatusOr<Operand> GatherOf(NodeContext& context, const Operand& src, const Operand& indices,
                                 int axis, absl::string_view suffix) {
  const Node& node = context.node;
  if (indices.constant == nullptr) return GatherComputed(context, src, indices, axis, suffix);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(indices.constant));
  if (known->is_float) return node.Invalid("indices that are not integers");
  std::vector<int64_t> from;
  for (size_t i = 0; i < known->ints.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(from.emplace_back(),
                          NormalizeIndex(node, known->ints[i], src.dims[axis], 1, i));
  }
  Dims dst = GatheredDims(src.dims, indices.dims, axis);
  const bool same_rank = indices.dims.size() == 1;
  ABSL_ASSIGN_OR_RETURN(const Operand gathered,
                        SelectAlong(context, src, axis, RunsOf(from),
                                    absl::StrCat(suffix, same_rank ? "" : "/gathered")));
  return ReshapeOf(context, gathered, std::move(dst), suffix);
}

TILEWIRE_OPERATORS(Gather) = {
    TrainsFirst({"Gather", 1, 2, 2, "axis", BuildGather, Folds::kInMemory}),
};

}  // namespace tilewire::reader
