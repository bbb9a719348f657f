// SPDX-License-Identifier: Apache-2.0
//
// Regions of images, pooled to one size (engine/primitives/roi_align/roi_align.h).
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {

using network::RoiAlign;
namespace {

constexpr int64_t kFirstAligned = 16;  // the opset; before it no region is moved by half a pixel
constexpr int64_t kMostBins = 4096;    // in each direction

absl::StatusOr<RoiAlign> ReadRoiAlign(const Node& node) {
  RoiAlign pooling;
  ABSL_ASSIGN_OR_RETURN(const std::string mode, node.OneOf("mode", "avg", {"avg", "max"}));
  pooling.takes_maximum = mode == "max";
  ABSL_ASSIGN_OR_RETURN(const std::string coordinates,
                        node.OneOf("coordinate_transformation_mode", "half_pixel",
                                   {"half_pixel", "output_half_pixel"}));
  pooling.aligned = node.opset() >= kFirstAligned && coordinates == "half_pixel";
  ABSL_ASSIGN_OR_RETURN(pooling.scale, node.Float("spatial_scale", 1));
  ABSL_ASSIGN_OR_RETURN(pooling.samples_per_bin, node.Int("sampling_ratio", 0));
  return pooling;
}

absl::Status BuildRoiAlign(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(RoiAlign pooling, ReadRoiAlign(node));
  ABSL_ASSIGN_OR_RETURN(const int64_t high, node.Int("output_height", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t wide, node.Int("output_width", 1));
  const Dims src = context.input(0).dims, rois = context.input(1).dims;
  if (src.size() != 4 || rois.size() != 2 || rois[1] != 4 || context.input(2).dims != Dims{rois[0]})
    return node.Invalid("regions ", DimsToString(rois), " of images ",
                        DimsToString(context.input(2).dims), " of ", DimsToString(src));
  if (high < 1 || high > kMostBins || wide < 1 || wide > kMostBins)
    return node.Invalid("output_height ", high, " and output_width ", wide);
  ABSL_ASSIGN_OR_RETURN(const ValueId images, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ValueId regions, context.Runtime(1));
  ABSL_ASSIGN_OR_RETURN(const ValueId batches, context.InType(context.input(2), DataType::kS64));
  return context.SetOutput(
      context.Emit(std::move(pooling), {images, regions, batches}, {rois[0], src[1], high, wide}));
}

}  // namespace

TILEWIRE_OPERATORS(RoiAlign) = {
    {"RoiAlign", 10, 3, 3,
     "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
     BuildRoiAlign},
};

}  // namespace tilewire::reader
