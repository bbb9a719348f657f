// SPDX-License-Identifier: Apache-2.0
//
// AffineGrid: where each element of a result lies in a source, as GridSample reads it:
//
//   grid[n, (d,) h, w, :] = theta[n] * (x, y, (z,) 1)
//
// Coordinates go from -1 to 1 along each dimension: from the centre of the first element to that of
// the last with align_corners, else from edge to edge. A dimension of one element is at 0.
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The coordinate of element `i` of `count`.
float CoordinateOf(int64_t i, int64_t count, bool align_corners) {
  const double at = static_cast<double>(i), all = static_cast<double>(count);
  if (!align_corners) return static_cast<float>((2 * at + 1) / all - 1);
  return count == 1 ? 0 : static_cast<float>(2 * at / (all - 1) - 1);
}

// The rows (x, y, (z,) 1) of all elements of `sizes`, the last dimension first in a row.
ConstantPtr PointsOf(std::string name, const Dims& sizes, bool align_corners) {
  const int64_t count = *ElementCount(sizes);
  const size_t rank = sizes.size();
  std::vector<float> points;
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t d = rank; d-- > 0; rest /= sizes[d])
      points.push_back(CoordinateOf(rest % sizes[d], sizes[d], align_corners));
    points.push_back(1);
  }
  return MakeFloats(std::move(name), {count, static_cast<int64_t>(rank) + 1}, std::move(points));
}

// The spatial sizes of input 1: [N, C, (D,) H, W].
absl::StatusOr<Dims> ReadSpatial(const NodeContext& context, const Dims& theta) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr size, context.Ints(1));
  const size_t rank = size->ints.size();
  if (size->dims.size() != 1 || (rank != 4 && rank != 5))
    return node.Invalid("a size of dims ", DimsToString(size->dims));
  const Dims whole(size->ints.begin(), size->ints.end());
  const int64_t axes = static_cast<int64_t>(rank) - 2;
  if (theta != Dims{whole[0], axes, axes + 1}) {
    return node.Invalid("theta ", DimsToString(theta), " does not fit size ", DimsToString(whole));
  }
  const Dims spatial(whole.begin() + 2, whole.end());
  if (absl::c_any_of(spatial, [](int64_t extent) { return extent < 1; }))
    return node.Invalid("size ", DimsToString(whole));
  const std::optional<int64_t> count = ElementCount(spatial);
  if (!count || *count > kLargestFold / (axes + 1))
    return node.TooLarge("size ", DimsToString(whole), ", whose coordinates are over ",
                         kLargestFold, " numbers");
  return spatial;
}

absl::StatusOr<Operand> GridOf(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t align_corners, context.node.Int("align_corners", 0));
  const Operand theta = context.input(0);
  ABSL_ASSIGN_OR_RETURN(Dims dims, ReadSpatial(context, theta.dims));
  const Operand points =
      OperandOf(PointsOf(context.output_name() + "/points", dims, align_corners != 0));
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context, theta, {0, 2, 1}, "/turned"));
  ABSL_ASSIGN_OR_RETURN(const Operand flat, MatMulOf(context, points, turned, "/flat"));
  dims.insert(dims.begin(), theta.dims[0]);
  dims.push_back(theta.dims[1]);
  return ReshapeOf(context, flat, std::move(dims));
}

absl::Status BuildAffineGrid(NodeContext& context) { return context.SetOutput(GridOf(context)); }

}  // namespace

TILEWIRE_OPERATORS(AffineGrid) = {
    {"AffineGrid", 20, 2, 2, "align_corners", BuildAffineGrid, Folds::kNever, LikeFirstInput,
     /*deciding=*/Inputs({1})},
};

}  // namespace tilewire::reader
