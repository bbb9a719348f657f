// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_weights_gradient.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kPixelsAhead = 64;        // of diff_dst, that are fetched before they are read
constexpr int64_t kMostFetchedPixels = 16;  // of src, for one of diff_dst
constexpr float kOneEverywhere = 1;  // its products with diff_dst are the gradient of the bias

bool AreSame(const TapRange& a, const TapRange& b) { return a.begin == b.begin && a.end == b.end; }

absl::Status RequireNearTaps(const WeightsGradientProblem& problem) {
  const Geometry& geometry = problem.geometry;
  if (AreNear({CheckedProduct({geometry.tap_step[1], problem.src.spatial[1], geometry.kernel[1]}),
               CheckedProduct({geometry.tap_step[2], problem.src.spatial[2], geometry.kernel[2]}),
               CheckedMul(geometry.stride[2], problem.src.spatial[2]),
               CheckedMul(geometry.stride[1], problem.src.spatial[1]), problem.dst.spatial[2],
               problem.dst.spatial[1], problem.weights.oc_block}))
    return absl::OkStatus();
  return Unimplemented("strides exceed 32-bit displacements");
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
    if (!segments.empty() && AreSame(segments.back().taps, taps)) {
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

int64_t DepthwiseWeightsGradient::TailChannels() const {
  return problem_.geometry.groups % problem_.unit.lanes();
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

// Whether an image has one plane, whose pixels are near each other, and registers hold the sums of
// a row of taps.
bool DepthwiseWeightsGradient::IsPlanar() const {
  const Geometry& geometry = problem_.geometry;
  const bool is_plane = geometry.out[0] == 1 && geometry.kernel[0] == 1 && geometry.in[0] == 1 &&
                        geometry.pad[0] == 0;
  constexpr int64_t kPixels = DepthwisePlaneGenerator::kMostPixels;
  return is_plane && DepthwisePlaneGenerator::MostTapRows(problem_.unit, geometry.kernel[2]) > 0 &&
         AreNear({CheckedProduct({geometry.stride[2], problem_.src.spatial[2], kPixels}),
                  CheckedMul(geometry.pad[2], problem_.src.spatial[2]),
                  CheckedMul(problem_.dst.spatial[2], kPixels)});
}

absl::Status DepthwiseWeightsGradient::Compile(absl::string_view name) {
  if (IsPlanar()) {
    const absl::Status planes = CompilePlanes(name);
    if (!absl::IsUnimplemented(planes)) return planes;
    planes_.clear();  // a part's code is too long
  }
  return CompileRectangles(name);
}

absl::Status DepthwiseWeightsGradient::CompileRectangles(absl::string_view name) {
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
  const bool has_tail = TailChannels() != 0;
  if (has_tail) ABSL_RETURN_IF_ERROR(CompileBiasTile(name, true));
  return Blocks() == 1 && has_tail ? absl::OkStatus() : CompileBiasTile(name, false);
}

// Rows of taps in about equal parts. The first part takes the bias, and fetches for all of them.
absl::Status DepthwiseWeightsGradient::CompilePlanes(absl::string_view name) {
  const int64_t rows = problem_.geometry.kernel[1];
  const int64_t most =
      DepthwisePlaneGenerator::MostTapRows(problem_.unit, problem_.geometry.kernel[2]);
  const int64_t parts = DivUp(rows, most), of_part = DivUp(rows, parts);
  for (int64_t first = 0; first < rows; first += of_part) {
    const TapRange part{first, std::min(rows, first + of_part)};
    const bool has_tail = first == 0 && problem_.has_bias && TailChannels() != 0;
    Plane& plane = planes_.emplace_back();
    if (has_tail) ABSL_RETURN_IF_ERROR(CompilePlane(name, part, true, &plane[1]));
    if (!has_tail || Blocks() > 1) ABSL_RETURN_IF_ERROR(CompilePlane(name, part, false, &plane[0]));
  }
  return absl::OkStatus();
}

// The segments of rows, with the taps of `part` alone. Neighbours that then have the same taps are
// joined, since each segment has code of its own.
std::vector<OutputSegment> DepthwiseWeightsGradient::RowsOf(const TapRange& part) const {
  std::vector<Segment> rows;
  for (const Segment& segment : segments_[1]) {
    TapRange taps = {std::max(segment.taps.begin, part.begin),
                     std::min(segment.taps.end, part.end)};
    if (taps.begin >= taps.end) taps = {part.begin, part.begin};
    if (!rows.empty() && AreSame(rows.back().taps, taps)) {
      rows.back().outputs.end = segment.outputs.end;
    } else {
      rows.push_back({segment.outputs, taps});
    }
  }
  return rows;
}

absl::Status DepthwiseWeightsGradient::CompilePlane(absl::string_view name, const TapRange& part,
                                                    bool tail, Tile* to) const {
  const WeightsGradientProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  DepthwisePlane plane{.unit = p.unit, .tap_rows = part, .rows = RowsOf(part)};
  plane.src_pixels = geometry.in[2];
  plane.dst_pixels = geometry.out[2];
  plane.taps = geometry.kernel[2];
  plane.stride = geometry.stride[2];
  plane.tap_step = geometry.tap_step[2];
  plane.pad = geometry.pad[2];
  plane.row_stride = geometry.stride[1];
  plane.src_pixel = p.src.spatial[2] * kFloatBytes;
  plane.src_row = p.src.spatial[1] * kFloatBytes;
  plane.src_tap_row = geometry.tap_step[1] * p.src.spatial[1] * kFloatBytes;
  plane.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  plane.dst_row = p.dst.spatial[1] * kFloatBytes;
  plane.weights_tap = p.weights.taps[2] * kFloatBytes;
  plane.weights_tap_row = p.weights.taps[1] * kFloatBytes;
  plane.has_bias = p.has_bias && part.begin == 0;
  plane.tail_lanes = tail ? static_cast<int>(TailChannels()) : 0;
  plane.fetches_ahead = part.begin == 0 && geometry.stride[2] <= kMostFetchedPixels;
  ABSL_ASSIGN_OR_RETURN(*to, jit::Compile<DepthwisePlaneGenerator>(name, plane));
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
  config.tail_lanes = tail ? static_cast<int>(TailChannels()) : 0;
  config.dst_pixel = p.dst.spatial[2] * kFloatBytes;
  config.dst_row = p.dst.spatial[1] * kFloatBytes;
  ABSL_ASSIGN_OR_RETURN(bias_tiles_[tail], jit::Compile<WeightsGradientGenerator>(name, config));
  return absl::OkStatus();
}

int64_t DepthwiseWeightsGradient::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& [taps, tile] : tiles_) bytes += static_cast<int64_t>(tile->code_bytes());
  const auto add = [&](const std::array<Tile, 2>& tiles) {
    for (const Tile& tile : tiles)
      bytes += tile == nullptr ? 0 : static_cast<int64_t>(tile->code_bytes());
  };
  add(bias_tiles_);
  for (const Plane& plane : planes_) add(plane);
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
    if (!planes_.empty()) {
      RunPlanes(operands, block, n);
      continue;
    }
    const float* const diff_dst = operands.diff_dst + n * p.dst.image + block * p.dst.block;
    RunImage({operands.src + n * p.src.image + block * p.src.block, diff_dst, weights});
    if (p.has_bias) RunBias(diff_dst, block, bias);
  }
}

void DepthwiseWeightsGradient::RunPlanes(const Operands& operands, int64_t block,
                                         int64_t image) const {
  const WeightsGradientProblem& p = problem_;
  DepthwisePlaneArgs args = ArgsAhead(block, image);
  args.src = operands.src + image * p.src.image + block * p.src.block -
             p.geometry.pad[1] * p.src.spatial[1];
  args.diff_dst = operands.diff_dst + image * p.dst.image + block * p.dst.block;
  args.diff_weights = operands.diff_weights + block * p.weights.oc_block;
  args.diff_bias = p.has_bias ? operands.diff_bias + block * p.unit.lanes() : nullptr;
  const bool is_tail = block == Blocks() - 1 && TailChannels() != 0;
  for (const Plane& plane : planes_) {
    const Tile& tile = is_tail && plane[1] != nullptr ? plane[1] : plane[0];
    tile->entry<DepthwisePlaneGenerator::Function>()(&args);
  }
}

// Some rows ahead of what the window reads, and after the last of them the plane that is next: of
// the next image, or of the next block's first one.
DepthwisePlaneArgs DepthwiseWeightsGradient::ArgsAhead(int64_t block, int64_t image) const {
  const WeightsGradientProblem& p = problem_;
  const Geometry& geometry = p.geometry;
  const int64_t stride = geometry.stride[1], pad = geometry.pad[1], outputs = geometry.out[1];
  const int64_t below = std::max<int64_t>(0, (geometry.kernel[1] - 1) * geometry.tap_step[1] - pad);
  const int64_t rows =
      std::min(outputs, DivUp(kPixelsAhead, geometry.out[2]) + DivUp(below, stride));
  int64_t next_src = 0, next_dst = 0;
  if (image + 1 < geometry.batch) {
    next_src = p.src.image;
    next_dst = p.dst.image;
  } else if (block + 1 < Blocks()) {
    next_src = p.src.block - image * p.src.image;
    next_dst = p.dst.block - image * p.dst.image;
  }
  const auto ahead = [&](int64_t src, int64_t dst, int64_t of_rows) {
    return DepthwisePlaneArgs::Ahead{
        (src + (of_rows * stride + pad) * p.src.spatial[1]) * kFloatBytes,
        (dst + of_rows * p.dst.spatial[1]) * kFloatBytes};
  };
  DepthwisePlaneArgs args;
  args.next_ahead = ahead(next_src, next_dst, rows - outputs);
  args.ahead = rows == outputs ? args.next_ahead : ahead(0, 0, rows);
  args.rows_to_next = std::max<int64_t>(1, outputs - rows);
  return args;
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
  const bool tail = block == Blocks() - 1 && TailChannels() != 0;
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
