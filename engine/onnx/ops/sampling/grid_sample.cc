// SPDX-License-Identifier: Apache-2.0
//
// GridSample of images: (x, y) = grid[n, h, w] is from -1 to 1 over the image. Source: ONNX's
// operator documents, opsets 16 to 22.
#include <string>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/sampling/sampler.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// Opset 20 gave two modes other names.
absl::StatusOr<Sampling> ReadSampling(const Node& node) {
  Sampling args;
  if (node.opset() < 20) {
    ABSL_ASSIGN_OR_RETURN(args.mode,
                          node.OneOf("mode", "bilinear", {"bilinear", "nearest", "bicubic"}));
    if (args.mode != "nearest") args.mode = args.mode.substr(2);
  } else {
    ABSL_ASSIGN_OR_RETURN(args.mode, node.OneOf("mode", "linear", {"linear", "nearest", "cubic"}));
  }
  ABSL_ASSIGN_OR_RETURN(args.padding,
                        node.OneOf("padding_mode", "zeros", {"zeros", "border", "reflection"}));
  ABSL_ASSIGN_OR_RETURN(const int64_t aligns, node.Int("align_corners", 0));
  args.aligns_corners = aligns != 0;
  // Implementations differ in whether places or elements are moved to the border.
  if (args.mode == "cubic" && args.padding == "border")
    return node.Unimplemented("mode cubic with padding_mode border");
  return args;
}

// Places along a dimension of `size` elements, of number `part` of each pair of the grid.
absl::StatusOr<Operand> PlacesOf(NodeContext& context, int64_t part, int64_t size, bool aligns) {
  const Operand grid = context.input(1);
  const std::string name = part == 0 ? "/column" : "/row";
  const auto linear = [&](const Operand& src, float scale, float shift, const char* step) {
    return LinearOf(context, src, scale, shift, name + step);
  };
  ABSL_ASSIGN_OR_RETURN(const Operand column,
                        SelectAlong(context, grid, 3, {{part, 1, 1}}, name + "_of_grid"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand numbers,
      ReshapeOf(context, column, Dims(grid.dims.begin(), grid.dims.end() - 1), name + "_from_-1"));
  ABSL_ASSIGN_OR_RETURN(const Operand positive, linear(numbers, 1, 1, "_from_0"));
  if (aligns) return linear(positive, static_cast<float>(size - 1) / 2, 0, "");
  ABSL_ASSIGN_OR_RETURN(const Operand doubled,
                        linear(positive, static_cast<float>(size), -1, "_doubled"));
  return linear(doubled, 0.5f, 0, "");
}

absl::Status BuildGridSample(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  const Dims& grid = context.input(1).dims;
  ABSL_ASSIGN_OR_RETURN(const Sampling sampling, ReadSampling(node));
  if (src.dims.size() == 5) return node.Unimplemented("volumes; supported are images");
  if (src.dims.size() != 4 || grid.size() != 4 || grid[0] != src.dims[0] || grid[3] != 2)
    return node.Invalid("a grid ", DimsToString(grid), " of an image ", DimsToString(src.dims));
  const bool aligns = sampling.aligns_corners;
  ABSL_ASSIGN_OR_RETURN(const Operand columns, PlacesOf(context, 0, src.dims[3], aligns));
  ABSL_ASSIGN_OR_RETURN(const Operand rows, PlacesOf(context, 1, src.dims[2], aligns));
  return context.SetOutput(SampleOf(context, src, rows, columns, sampling));
}

}  // namespace

TILEWIRE_OPERATORS(GridSample) = {
    {"GridSample", 16, 2, 2, "align_corners mode padding_mode", BuildGridSample},
};

}  // namespace tilewire::reader
