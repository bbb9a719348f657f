// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/direct_driver.h"
#include "engine/primitives/deconvolution/few_outputs_generator.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"

namespace tilewire::deconvolution {
namespace {

constexpr int64_t kOutputBytes = sizeof(float);

// An output takes a step for each tap and input block, and a few to add up its lanes and to be
// stored; a vector of outputs takes one for each tap and input channel.
absl::Status RequireFewOutputs(const Geometry& geometry, int64_t lanes) {
  constexpr int64_t kFewestVectors = 4, kLaneSums = 4, kStore = 6;
  int64_t steps = 1, outputs = 1;
  for (const Axis& axis : geometry.axes) {
    steps *= DivUp(axis.kernel, axis.stride);
    outputs *= axis.out;
  }
  if (geometry.grouped_weights || geometry.ic < lanes || geometry.oc > lanes ||
      outputs < kFewestVectors * lanes ||
      geometry.oc * (DivUp(geometry.ic, lanes) * steps + kLaneSums) >=
          geometry.ic * steps + kStore) {
    return Unimplemented("is for few output channels of many pixels, without groups");
  }
  return absl::OkStatus();
}

// Whether each output has one tap, and all of a pixel lie side by side.
bool SpreadsPixels(const Axis& axis) {
  return axis.stride == axis.kernel && axis.tap_step == 1 && axis.pad == 0 &&
         axis.out == axis.in * axis.stride;
}

// The phases along the width and the height that a tile holds.
struct Phases {
  int64_t columns = 1, rows = 1;
};

Phases PhasesOf(const Geometry& geometry) {
  constexpr int64_t kMost = FewOutputsGenerator::kMostPhases, kFarthestRow = int64_t{1} << 28;
  const Axis &height = geometry.axes[1], &width = geometry.axes[2];
  Phases phases;
  if (!SpreadsPixels(width) || width.stride > kMost) return phases;
  phases.columns = width.stride;
  if (SpreadsPixels(height) && height.stride == 2 && 2 * phases.columns <= kMost &&
      height.dst_stride < kFarthestRow)
    phases.rows = 2;
  return phases;
}

FewOutputsConfig FewOutputsConfigOf(const DeconvolutionDesc& desc, const PostOps& post_ops,
                                    const VectorUnit& unit, int64_t pixels) {
  const Geometry geometry = GeometryOf(desc);
  const Phases phases = PhasesOf(geometry);
  const int64_t dst_pixel_bytes = geometry.axes[2].stride / phases.columns * kOutputBytes;
  return {.unit = unit,
          .pixels = static_cast<int>(pixels),
          .columns = static_cast<int>(phases.columns),
          .rows = static_cast<int>(phases.rows),
          .loop = {.ic_blocks = geometry.ic / unit.lanes(),
                   .tail_channels = static_cast<int>(geometry.ic % unit.lanes()),
                   .src_block_bytes = desc.src.stride(1) * kOutputBytes,
                   .weights_block_bytes = desc.weights.stride(1) * kOutputBytes,
                   .src_tile_bytes = pixels * unit.bytes(),
                   .dst_tile_bytes = pixels * phases.columns * dst_pixel_bytes},
          .src_row_bytes = geometry.axes[1].src_stride * kOutputBytes,
          .dst_pixel_bytes = dst_pixel_bytes,
          .dst_row_bytes = geometry.axes[1].dst_stride * kOutputBytes,
          .bias = !desc.bias.IsZero(),
          .post_ops = post_ops};
}

}  // namespace

absl::StatusOr<DeconvolutionDesc> ResolveFewOutputs(const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, request.attributes));
  const int64_t lanes = VectorUnit::Of(request.facts.isa).lanes();
  const Geometry geometry = GeometryOf(desc);
  ABSL_RETURN_IF_ERROR(RequireFewOutputs(geometry, lanes));
  if (request.attributes.post_ops.HasSum() && geometry.axes[2].stride > PhasesOf(geometry).columns)
    return Unimplemented("takes no sum of outputs that are apart");
  const int rank = desc.src.rank();
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc resolved,
                        ResolveTiles(desc, {.lanes = lanes,
                                            .dst = std::string(PlainPattern(rank)),
                                            .weights = BlockedPattern(rank, lanes)}));
  const int width = rank - 1;
  if (!resolved.dst.IsPlain() || (resolved.dst.dim(width) > 1 && resolved.dst.stride(width) != 1)) {
    return Unimplemented("takes plain rows of dst, not ", resolved.dst.ToString());
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFewOutputs(
    const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const Phases phases = PhasesOf(GeometryOf(desc));
  const Blocking blocking = {.src_lanes = unit.lanes(),
                             .dst_lanes = 1,
                             .tile_blocks = 1,
                             .tile_pixels = unit.lanes() / phases.columns,
                             .merges_columns = phases.columns > 1,
                             .merges_rows = phases.rows > 1,
                             .phase_by_phase = false};
  return CreateDriver(InfoOf(request), desc, blocking, [&](bool /*last*/, int64_t pixels) {
    return jit::Compile<FewOutputsGenerator>(
        request.facts.name, FewOutputsConfigOf(desc, request.attributes.post_ops, unit, pixels));
  });
}

}  // namespace tilewire::deconvolution
