// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_weights_gradient.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kLargestFetchedPlane = 8 * 1024;  // elements
constexpr int64_t kBytesOfPage = 4096;
constexpr float kOneEverywhere = 1;  // its products with diff_dst are the gradient of the bias

absl::Status RequireNearTaps(const WeightsGradientProblem& problem) {
  constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 4;
  const Geometry& geometry = problem.geometry;
  for (const std::optional<int64_t>& span :
       {CheckedProduct({geometry.tap_step[1], problem.src.spatial[1], geometry.kernel[1]}),
        CheckedProduct({geometry.tap_step[2], problem.src.spatial[2], geometry.kernel[2]}),
        CheckedMul(geometry.stride[2], problem.src.spatial[2]),
        CheckedMul(geometry.stride[1], problem.src.spatial[1]),
        CheckedMul(problem.dst.spatial[2], 1), CheckedMul(problem.dst.spatial[1], 1),
        CheckedMul(problem.weights.oc_block, 1)}) {
    if (!span || *span > kLargestSpan) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

DepthwiseWeightsGradient::DepthwiseWeightsGradient(const WeightsGradientProblem& problem)
    : problem_(problem) {
  for (int d = 0; d < 3; ++d) segments_[d] = SegmentsOf(d);
}

std::vector<DepthwiseWeightsGradient::Segment> DepthwiseWeightsGradient::SegmentsOf(int d) const {
  std::vector<Segment> segments;
  for (int64_t o = 0; o < problem_.geometry.out[d]; ++o) {
    const TapRange taps = ValidTaps(problem_.geometry, d, o);
    if (!segments.empty() && segments.back().taps.begin == taps.begin &&
        segments.back().taps.end == taps.end) {
      ++segments.back().outputs.end;
    } else {
      segments.push_back({{o, o + 1}, taps});
    }
  }
  return segments;
}

int64_t DepthwiseWeightsGradient::Blocks() const {
  return DivUp(problem_.geometry.groups, problem_.unit.lanes());
}

absl::StatusOr<DepthwiseWeightsGradient> DepthwiseWeightsGradient::Create(
    absl::string_view name, const WeightsGradientProblem& problem) {
  ABSL_RETURN_IF_ERROR(RequireNearTaps(problem));
  DepthwiseWeightsGradient gradient(problem);
  ABSL_RETURN_IF_ERROR(gradient.Compile(name));
  return gradient;
}

template <typename Visit>
void DepthwiseWeightsGradient::ForEachPart(const TapRange& rows, const TapRange& taps,
                                           const Visit& visit) const {
  if (taps.begin == taps.end) return;
  const int64_t of_row = std::min(taps.end - taps.begin, MostTaps());
  const int64_t rows_at_once = MostTaps() / of_row;
  for (int64_t row = rows.begin; row < rows.end; row += rows_at_once) {
    for (int64_t tap = taps.begin; tap < taps.end; tap += of_row) {
      visit(TapRange{row, std::min(rows.end, row + rows_at_once)},
            TapRange{tap, std::min(taps.end, tap + of_row)});
    }
  }
}

// Whether an image has one plane, whose taps have sums in registers.
bool DepthwiseWeightsGradient::IsPlanar() const {
  const Geometry& geometry = problem_.geometry;
  return geometry.out[0] == 1 && geometry.kernel[0] == 1 && geometry.in[0] == 1 &&
         geometry.pad[0] == 0 &&
         DepthwisePlaneGenerator::Holds(problem_.unit, geometry.kernel[1] * geometry.kernel[2]);
}

absl::Status DepthwiseWeightsGradient::Compile(absl::string_view name) {
  const bool has_tail = problem_.geometry.groups % problem_.unit.lanes() != 0;
  if (IsPlanar()) {
    if (has_tail) ABSL_RETURN_IF_ERROR(CompilePlane(name, true));
    return Blocks() == 1 && has_tail ? absl::OkStatus() : CompilePlane(name, false);
  }
  absl::Status status;
  for (const Segment& rows : segments_[1]) {
    for (const Segment& pixels : segments_[2]) {
      ForEachPart(rows.taps, pixels.taps, [&](const TapRange& row, const TapRange& tap) {
        if (status.ok()) status = CompileTile(name, row.end - row.begin, tap.end - tap.begin);
      });
    }
  }
  ABSL_RETURN_IF_ERROR(status);
  if (!problem_.has_bias) return absl::OkStatus();
  if (has_tail) ABSL_RETURN_IF_ERROR(CompileBiasTile(name, true));
  return Blocks() == 1 && has_tail ? absl::OkStatus() : CompileBiasTile(name, false);
}

absl::Status DepthwiseWeightsGradient::CompilePlane(absl::string_view name, bool tail) {
  const WeightsGradientProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  DepthwisePlane plane{.unit = p.unit, .rows = segments_[1], .pixels = segments_[2]};
  plane.tap_rows = static_cast<int>(geometry.kernel[1]);
  plane.taps_of_row = static_cast<int>(geometry.kernel[2]);
  plane.src_row = geometry.stride[1] * p.src.spatial[1] * kFloatBytes;
  plane.src_pixel = geometry.stride[2] * p.src.spatial[2] * kFloatBytes;
  plane.src_tap_row = geometry.tap_step[1] * p.src.spatial[1] * kFloatBytes;
  plane.src_tap = geometry.tap_step[2] * p.src.spatial[2] * kFloatBytes;
  plane.dst_row = p.dst.spatial[1] * kFloatBytes;
  plane.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  plane.weights_tap_row = p.weights.taps[1] * kFloatBytes;
  plane.weights_tap = p.weights.taps[2] * kFloatBytes;
  plane.has_bias = p.has_bias;
  plane.tail_lanes = tail ? static_cast<int>(geometry.groups % p.unit.lanes()) : 0;
  ABSL_ASSIGN_OR_RETURN(planes_[tail], jit::Compile<DepthwisePlaneGenerator>(name, plane));
  return absl::OkStatus();
}

absl::Status DepthwiseWeightsGradient::CompileTile(absl::string_view name, int64_t rows,
                                                   int64_t taps_of_row) {
  Tile& tile = tiles_[{rows, taps_of_row}];
  if (tile != nullptr) return absl::OkStatus();
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config{.unit = p.unit};
  config.depthwise = true;
  config.sources = static_cast<int>(rows * taps_of_row);
  config.sources_of_row = static_cast<int>(taps_of_row);
  config.src_source = p.geometry.tap_step[2] * p.src.spatial[2] * kFloatBytes;
  config.src_source_row = p.geometry.tap_step[1] * p.src.spatial[1] * kFloatBytes;
  config.src_pixel = p.geometry.stride[2] * p.src.spatial[2] * kFloatBytes;
  config.src_row = p.geometry.stride[1] * p.src.spatial[1] * kFloatBytes;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  config.weights_source = p.weights.taps[2] * kFloatBytes;
  config.weights_source_row = p.weights.taps[1] * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(tile, jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

absl::Status DepthwiseWeightsGradient::CompileBiasTile(absl::string_view name, bool tail) {
  const WeightsGradientProblem& p = problem_;
  WeightsGradientTile config{.unit = p.unit};
  config.chains = WeightsGradientGenerator::kChainsOfBias;
  config.tail_lanes = tail ? static_cast<int>(p.geometry.groups % p.unit.lanes()) : 0;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(bias_tiles_[tail], jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

int64_t DepthwiseWeightsGradient::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& [taps, tile] : tiles_) bytes += static_cast<int64_t>(tile->code_bytes());
  for (const auto* tiles : {&bias_tiles_, &planes_}) {
    for (const Tile& tile : *tiles)
      bytes += tile == nullptr ? 0 : static_cast<int64_t>(tile->code_bytes());
  }
  return bytes;
}

void DepthwiseWeightsGradient::Run(const Operands& operands, const threading::Team& team) const {
  team.ParallelFor(Blocks(), [&](int64_t block) { RunBlock(operands, block); });
}

void DepthwiseWeightsGradient::RunBlock(const Operands& operands, int64_t block) const {
  const WeightsGradientProblem& p = problem_;
  const int64_t lanes = p.unit.lanes(), first = block * lanes;
  float* const weights = operands.diff_weights + block * p.weights.oc_block;
  float* const bias = p.has_bias ? operands.diff_bias + first : nullptr;
  if (!p.adds) {
    std::fill(weights, weights + p.weights.oc_block, 0.0f);
    if (p.has_bias) std::fill(bias, bias + std::min(lanes, p.geometry.groups - first), 0.0f);
  }
  for (int64_t n = 0; n < p.geometry.batch && !threading::Stopped(); ++n) {
    if (IsPlanar()) {
      RunPlane(operands, block, n);
      continue;
    }
    const float* const diff_dst = operands.diff_dst + n * p.dst.image + block * p.dst.block;
    RunImage({operands.src + n * p.src.image + block * p.src.block, diff_dst, weights});
    if (p.has_bias) RunBias(diff_dst, block, bias);
  }
}

// Meanwhile the next image is fetched, or the first one of the next block; of planes so large that
// it would leave the caches again before it is read, what lies a page ahead.
void DepthwiseWeightsGradient::RunPlane(const Operands& operands, int64_t block,
                                        int64_t image) const {
  const WeightsGradientProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  const int64_t corner = geometry.pad[1] * p.src.spatial[1] + geometry.pad[2] * p.src.spatial[2];
  DepthwisePlaneArgs args = {
      .src = operands.src + image * p.src.image + block * p.src.block - corner,
      .diff_dst = operands.diff_dst + image * p.dst.image + block * p.dst.block,
      .diff_weights = operands.diff_weights + block * p.weights.oc_block,
      .diff_bias = p.has_bias ? operands.diff_bias + block * p.unit.lanes() : nullptr};
  if (std::max(p.src.spatial[1] * geometry.in[1], p.dst.spatial[1] * geometry.out[1]) >
      kLargestFetchedPlane) {
    args.src_ahead = args.dst_ahead = kBytesOfPage;
  } else if (image + 1 < geometry.batch) {
    args.src_ahead = p.src.image * kFloatBytes;
    args.dst_ahead = p.dst.image * kFloatBytes;
  } else if (block + 1 < Blocks()) {
    args.src_ahead = (p.src.block - image * p.src.image) * kFloatBytes;
    args.dst_ahead = (p.dst.block - image * p.dst.image) * kFloatBytes;
  }
  const bool tail = block == Blocks() - 1 && geometry.groups % p.unit.lanes() != 0;
  planes_[tail]->entry<DepthwisePlaneGenerator::Function>()(&args);
}

void DepthwiseWeightsGradient::RunImage(const Place& place) const {
  const Geometry& geometry = problem_.geometry;
  for (const Segment& depths : segments_[0]) {
    for (int64_t depth = depths.outputs.begin; depth < depths.outputs.end; ++depth) {
      for (int64_t tap = depths.taps.begin; tap < depths.taps.end; ++tap) {
        Place at = place;
        at.src += (depth * geometry.stride[0] + tap * geometry.tap_step[0] - geometry.pad[0]) *
                  problem_.src.spatial[0];
        at.diff_dst += depth * problem_.dst.spatial[0];
        at.diff_weights += tap * problem_.weights.taps[0];
        for (const Segment& rows : segments_[1]) {
          for (const Segment& pixels : segments_[2]) RunRectangle(at, rows, pixels);
        }
      }
    }
  }
}

void DepthwiseWeightsGradient::RunRectangle(const Place& place, const Segment& rows,
                                            const Segment& pixels) const {
  const WeightsGradientProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  ForEachPart(rows.taps, pixels.taps, [&](const TapRange& row, const TapRange& tap) {
    const int64_t y = rows.outputs.begin * geometry.stride[1] + row.begin * geometry.tap_step[1] -
                      geometry.pad[1];
    const int64_t x = pixels.outputs.begin * geometry.stride[2] + tap.begin * geometry.tap_step[2] -
                      geometry.pad[2];
    const WeightsGradientArgs args = {
        .src = place.src + y * p.src.spatial[1] + x * p.src.spatial[2],
        .diff_dst = place.diff_dst + rows.outputs.begin * p.dst.spatial[1] +
                    pixels.outputs.begin * p.dst.spatial[2],
        .diff_weights =
            place.diff_weights + row.begin * p.weights.taps[1] + tap.begin * p.weights.taps[2],
        .rows = rows.outputs.end - rows.outputs.begin,
        .pixels = pixels.outputs.end - pixels.outputs.begin};
    const Tile& tile = tiles_.find({row.end - row.begin, tap.end - tap.begin})->second;
    tile->entry<WeightsGradientGenerator::Function>()(&args);
  });
}

void DepthwiseWeightsGradient::RunBias(const float* diff_dst, int64_t block, float* bias) const {
  const Geometry& geometry = problem_.geometry;
  const bool tail = block == Blocks() - 1 && geometry.groups % problem_.unit.lanes() != 0;
  for (int64_t depth = 0; depth < geometry.out[0]; ++depth) {
    const WeightsGradientArgs args = {.src = &kOneEverywhere,
                                      .diff_dst = diff_dst + depth * problem_.dst.spatial[0],
                                      .diff_weights = bias,
                                      .rows = geometry.out[1],
                                      .pixels = geometry.out[2]};
    bias_tiles_[tail]->entry<WeightsGradientGenerator::Function>()(&args);
  }
}

}  // namespace tilewire::convolution
