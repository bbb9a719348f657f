// SPDX-License-Identifier: Apache-2.0
//
// DepthToSpace and SpaceToDepth: blocks of b x b pixels to channels and back, as a transpose
// between two reshapes.
//   DCR  [N, b, b, C/b^2, H, W]: the block is the slow part of the channels
//   CRD  [N, C/b^2, b, b, H, W]: the block is the fast part
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<int64_t> ReadBlock(const NodeContext& context) {
  const Dims& dims = context.input(0).dims;
  if (dims.size() != 4)
    return context.node.Invalid("input ", DimsToString(dims), " is not of rank 4");
  ABSL_ASSIGN_OR_RETURN(const int64_t block, context.node.Int("blocksize", 0));
  if (block < 1 || block > INT16_MAX) return context.node.Invalid("blocksize ", block);
  return block;
}

absl::Status FinishMove(NodeContext& context, Dims split, std::vector<int> order, Dims dst) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.RuntimeOfAnyType(0));
  Dims moved;
  for (int axis : order) moved.push_back(split[axis]);
  ABSL_ASSIGN_OR_RETURN(const ValueId blocks, context.EmitReshape(src, std::move(split), "/split"));
  ABSL_ASSIGN_OR_RETURN(
      const ValueId transposed,
      context.Emit(network::Transpose{std::move(order)}, {blocks}, std::move(moved), "/moved"));
  return context.SetOutput(context.EmitReshape(transposed, std::move(dst)));
}

absl::Status BuildDepthToSpace(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t b, ReadBlock(context));
  ABSL_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", "DCR"));
  if (mode != "DCR" && mode != "CRD") return node.Invalid("mode '", mode.substr(0, 200), "'");
  const Dims dims = context.input(0).dims;
  if (dims[1] % (b * b) != 0)
    return node.Invalid("blocksize ", b, " does not divide ", DimsToString(dims));
  const int64_t channels = dims[1] / (b * b);
  const Dims dst = {dims[0], channels, dims[2] * b, dims[3] * b};
  if (mode == "DCR")
    return FinishMove(context, {dims[0], b, b, channels, dims[2], dims[3]}, {0, 3, 4, 1, 5, 2},
                      dst);
  return FinishMove(context, {dims[0], channels, b, b, dims[2], dims[3]}, {0, 1, 4, 2, 5, 3}, dst);
}

absl::Status BuildSpaceToDepth(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t b, ReadBlock(context));
  const Dims dims = context.input(0).dims;
  if (dims[2] % b != 0 || dims[3] % b != 0) {
    return context.node.Invalid("blocksize ", b, " does not divide ", DimsToString(dims));
  }
  return FinishMove(context, {dims[0], dims[1], dims[2] / b, b, dims[3] / b, b}, {0, 3, 5, 1, 2, 4},
                    {dims[0], dims[1] * b * b, dims[2] / b, dims[3] / b});
}

}  // namespace

TILEWIRE_OPERATORS(SpaceDepth) = {
    {"DepthToSpace", 1, 1, 1, "blocksize mode", BuildDepthToSpace},
    {"SpaceToDepth", 1, 1, 1, "blocksize", BuildSpaceToDepth},
};

}  // namespace tilewire::reader
