// SPDX-License-Identifier: Apache-2.0
//
// Operators that select by a known condition: Compress takes elements, NonZero lists indices.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::Status BuildCompress(NodeContext& context) {
  const Node& node = context.node;
  Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr condition, context.Ints(1));
  int axis = 0;
  if (node.HasAttribute("axis")) {
    ABSL_ASSIGN_OR_RETURN(axis, ReadAxis(node, 0, src.dims.size()));
  } else {
    ABSL_ASSIGN_OR_RETURN(src, ReshapeOf(context, src, {*ElementCount(src.dims)}, "/flat"));
  }
  if (condition->dims.size() != 1 || condition->dims[0] > src.dims[axis])
    return node.Invalid("a condition of dims ", DimsToString(condition->dims), " for ",
                        src.dims[axis], " elements");
  std::vector<int64_t> from;
  for (size_t i = 0; i < condition->ints.size(); ++i) {
    if (condition->ints[i] != 0) from.push_back(static_cast<int64_t>(i));
  }
  return context.SetOutput(SelectAlong(context, src, axis, RunsOf(from)));
}

// [rank, found]: the indices of what is not 0, in row-major order.
absl::Status BuildNonZero(NodeContext& context) {
  const Operand& src = context.input(0);
  if (src.constant == nullptr)
    return context.node.Unimplemented("input 0 is computed at run time; it must be known at load");
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*src.constant));
  std::vector<int64_t> places;
  for (size_t i = 0; i < held.values.size(); ++i) {
    if (held.values[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  const Dims dims = {static_cast<int64_t>(src.dims.size()), static_cast<int64_t>(places.size())};
  std::vector<int64_t> indices(*ElementCount(dims));
  for (size_t d = src.dims.size(); d-- > 0;) {
    for (size_t i = 0; i < places.size(); ++i) {
      indices[d * places.size() + i] = places[i] % src.dims[d];
      places[i] /= src.dims[d];
    }
  }
  return context.SetOutput(MakeInts(context.output_name(), dims, std::move(indices)));
}

}  // namespace

TILEWIRE_OPERATORS(Compress) = {
    Late({"Compress", 9, 2, 2, "axis", BuildCompress, Folds::kInMemory}),
    Late({"NonZero", 9, 1, 1, "", BuildNonZero, Folds::kInMemory, Indices}),
};

}  // namespace tilewire::reader
