// SPDX-License-Identifier: Apache-2.0
//
// The rows of convolutions whose groups share vectors of output channels: which shapes they suit,
// and the loops over images, rows and blocks of output channels around the generated tiles.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/direct_cost.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/direct/grouped_generator.h"
#include "engine/primitives/convolution/direct/grouped_lanes.h"
#include "engine/primitives/convolution/direct/tile_cache.h"
#include "engine/primitives/convolution/direct/work_grid.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::convolution {
namespace {

// The convolution as its loops see it: flat where rows do not matter, and with columns for rows
// where those are short. Strides in floats; of bf16, those of dst count pairs.
struct GroupedProblem {
  Geometry geometry;
  VectorUnit unit;
  ActivationStrides src, dst;
  int64_t weights_channel = 0;
  Spatial weights_taps{0, 0, 0};
  DataType dst_type = DataType::kF32;
  bool has_bias = false;
  PostOps post_ops;

  int64_t blocks() const { return DivUp(geometry.groups * geometry.oc, unit.lanes()); }
};

GroupedProblem GroupedProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                                const VectorUnit& unit) {
  constexpr int kInputs = 2, kFirstTap = 3;  // dimensions of weights
  GroupedProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  Geometry& geometry = problem.geometry;
  problem.src = StridesOf(desc.src, unit.lanes(), geometry.ic);
  problem.dst = StridesInFloats(desc.dst, unit.lanes(), geometry.oc);
  problem.weights_channel = desc.weights.stride(kInputs);
  problem.weights_taps = SpatialStrides(desc.weights, kFirstTap);
  problem.dst_type = desc.dst.data_type();
  problem.has_bias = !desc.bias.IsZero();
  problem.post_ops = attributes.post_ops;
  FlattenPixels(&geometry, problem.src.spatial, problem.dst.spatial);
  const Spatial out = geometry.out;
  if (geometry.kernel[0] == 1) TurnColumns(&geometry, &problem.src.spatial, &problem.dst.spatial);
  if (geometry.out != out) std::swap(problem.weights_taps[1], problem.weights_taps[2]);
  return problem;
}

// Every displacement and increment in the generated code lies within one of these spans.
absl::Status RequireNearPixels(const GroupedProblem& problem) {
  constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 4;
  const Geometry& geometry = problem.geometry;
  const int64_t registers = problem.unit.registers();
  std::optional<int64_t> spans[] = {
      CheckedProduct({geometry.tap_step[0], problem.src.spatial[0]}),
      CheckedProduct({geometry.tap_step[1], problem.src.spatial[1]}),
      CheckedProduct({geometry.tap_step[2], problem.src.spatial[2], geometry.kernel[2]}),
      CheckedProduct({geometry.stride[2], problem.src.spatial[2], registers}),
      CheckedMul(problem.dst.spatial[2], registers),
      CheckedMul(problem.weights_taps[0], 1),
      CheckedMul(problem.weights_taps[1], 1),
      CheckedMul(problem.weights_taps[2], geometry.kernel[2])};
  for (const std::optional<int64_t>& span : spans) {
    if (!span || *span > kLargestSpan) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

Tiling TilingOf(const GroupedProblem& problem, int sources) {
  const int64_t row = problem.geometry.out[2], blocks = problem.blocks();
  const int addend = problem.dst_type != DataType::kF32 && problem.post_ops.HasSum() ? 2 : 0;
  const int scratch = std::max(AccumulatorEpilogue::ScratchCount(problem.post_ops), addend);
  const int most = MostGroupedPixels(problem.unit, problem.geometry.kernel[2], sources, scratch);
  return {SplitEvenly(row, DivUp(row, most)), SplitEvenly(blocks, blocks)};
}

// Blocks of output channels that share blocks of src are one piece, of as many rows as keep what
// they read in the second cache, and as leave eight pieces for several threads.
WorkSize WorkSizeOf(const Geometry& geometry, const Tiling& tiling, int lanes) {
  constexpr int64_t kSrcBytes = 256 * 1024, kPieces = 8;
  const int64_t all_outputs = geometry.groups * geometry.oc;
  const int64_t outputs = std::min(all_outputs, GroupedLanes::OutputsOfPeriod(geometry, lanes));
  const int64_t units =
      geometry.out[0] * geometry.out[1] * static_cast<int64_t>(tiling.tiles.size());
  const int64_t src_bytes = outputs / geometry.oc * geometry.ic * geometry.in[0] * geometry.in[1] *
                            geometry.in[2] * kFloatBytes;
  WorkSize work;
  work.oc_groups = DivUp(outputs, lanes);
  const int64_t oc_pieces = DivUp(all_outputs, outputs);
  work.units = units * std::min(kSrcBytes, src_bytes) / std::max<int64_t>(1, src_bytes);
  work.units = std::min(work.units, DivUp(units, DivUp(kPieces, oc_pieces)));
  work.units = std::max<int64_t>(1, work.units);
  return work;
}

struct GroupedDriver {
  void Run(const DrivenRun& run) const {
    const int64_t at_once = grid.PiecesAtOnce(run.team.threads());
    const int64_t pieces = problem.geometry.batch * grid.PiecesPerImage(at_once);
    run.team.ParallelFor(pieces, [&](int64_t index) {
      const WorkGrid::Piece piece = grid.PieceAt(index, at_once);
      for (int64_t i = 0; i < piece.oc_groups.size; ++i) {
        const int64_t block = piece.oc_groups.begin + i;
        grid.RunUnits(PositionOf(run, piece.image, block), functions.of(block), piece, {});
      }
    });
  }
  int64_t code_bytes() const { return functions.code_bytes(); }

  GroupedArgs PositionOf(const DrivenRun& run, int64_t image, int64_t block) const {
    const int lanes = problem.unit.lanes();
    GroupedArgs position;
    position.src = run.First<const float>(kArgSrc) + image * problem.src.image +
                   lanes_of.FirstSource(block) * problem.src.block;
    position.weights = run.First<const float>(kArgWeights) +
                       block / blocks_of_period * weights_period + block % blocks_of_period * lanes;
    position.bias = problem.has_bias ? run.First<const float>(kArgBias) + block * lanes : nullptr;
    position.slopes = slopes.empty() ? nullptr : slopes.data() + block * lanes;
    position.dst = run.First<float>(kArgDst) + image * problem.dst.image + DstOffset(block);
    position.table = &lanes_of.TableOf(block);
    position.loops = {.full_blocks = 1};
    return position;
  }

  // A line of bf16 has two blocks.
  int64_t DstOffset(int64_t block) const {
    if (problem.dst_type != DataType::kBf16) return block * problem.dst.block;
    return block / 2 * problem.dst.block + block % 2 * (problem.unit.lanes() / 2);
  }

  GroupedProblem problem;
  GroupedLanes lanes_of;
  WorkGrid grid;
  TileCache<GroupedConfig, GroupedFunction> functions;
  std::vector<float> slopes;
  int64_t weights_period, blocks_of_period;  // of groups whose outputs fill whole blocks
};

GroupedConfig ConfigOf(const GroupedProblem& problem, const StepKind& kind, const Range& tile,
                       int64_t block) {
  const Geometry& geometry = problem.geometry;
  const int lanes = problem.unit.lanes();
  const bool is_last = block + 1 == problem.blocks();
  GroupedConfig config{.epilogue = {.unit = problem.unit}, .kind = kind};
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.pixels = static_cast<int>(tile.size);
  epilogue.dst_pixel_bytes = problem.dst.spatial[2] * kFloatBytes;
  epilogue.dst_block_bytes = problem.dst.block * kFloatBytes;
  epilogue.bias = problem.has_bias;
  epilogue.tail_lanes = is_last ? static_cast<int>(geometry.groups * geometry.oc % lanes) : 0;
  epilogue.post_ops = problem.post_ops;
  epilogue.dst_type = problem.dst_type;
  epilogue.begins_inside_line = block % 2 == 1;
  epilogue.pads_line = is_last && block % 2 == 0;
  TapLoops& loops = config.loops;
  loops.src_pixel = problem.src.spatial[2] * geometry.stride[2] * kFloatBytes;
  for (int d = 0; d < 3; ++d)
    loops.src_tap[d] = problem.src.spatial[d] * geometry.tap_step[d] * kFloatBytes;
  loops.kernel = geometry.kernel;
  for (int64_t pixel = 0; pixel < tile.size; ++pixel)
    loops.taps.push_back(ValidTaps(geometry, 2, tile.begin + pixel));
  config.weights_depth = problem.weights_taps[0] * kFloatBytes;
  config.weights_row = problem.weights_taps[1] * kFloatBytes;
  config.weights_tap = problem.weights_taps[2] * kFloatBytes;
  return config;
}

absl::Status RequireNarrowGroups(const Geometry& geometry, const VectorUnit& unit) {
  const int lanes = unit.lanes();
  if (geometry.groups < 2 || geometry.IsDepthwise() || geometry.ic < 1 || geometry.oc < 1 ||
      (geometry.ic % lanes == 0 && geometry.oc % lanes == 0)) {
    return Unimplemented("is for groups that do not begin with blocks of channels");
  }
  if (FitsTablesOfLanes(geometry, unit)) return absl::OkStatus();
  return Unimplemented("the tables of groups that wide would be too large");
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveGrouped(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireTypesOfRow(request));
  ABSL_RETURN_IF_ERROR(RequireNarrowGroups(GeometryOf(desc), unit));
  return ResolveLayouts(desc, unit, WeightsKind::kGrouped);
}

double CostGrouped(const Request<ConvolutionDesc>& resolved) {
  return GroupedCycles(GeometryOf(resolved.desc), VectorUnit::Of(resolved.facts.isa),
                       resolved.machine);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateGrouped(const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const GroupedProblem problem = GroupedProblemOf(request.desc, request.attributes, unit);
  ABSL_RETURN_IF_ERROR(RequireNearPixels(problem));
  GroupedLanes lanes(problem.geometry, unit,
                     {.src_block = problem.src.block * kFloatBytes,
                      .weights_channel = problem.weights_channel * kFloatBytes});
  const Tiling tiling = TilingOf(problem, lanes.MostSources());
  Geometry whole = problem.geometry;
  whole.groups = 1;  // of the grid: groups share blocks
  WorkGrid grid(whole, tiling, WorkSizeOf(problem.geometry, tiling, unit.lanes()),
                problem.src.spatial, problem.dst.spatial,
                problem.weights_taps[1] / problem.geometry.kernel[2]);
  TileCache<GroupedConfig, GroupedFunction> functions;
  ABSL_RETURN_IF_ERROR(functions.Generate(
      tiling,
      [&](const Range& tile, const Range& block) {
        return ConfigOf(problem, lanes.KindOf(block.begin), tile, block.begin);
      },
      [&](const GroupedConfig& config) { return GenerateGrouped(request.facts.name, config); }));
  const MemoryDesc& weights = request.desc.weights;
  return MakeDriven(InfoOf(request),
                    GroupedDriver{problem, std::move(lanes), std::move(grid), std::move(functions),
                                  PaddedSlopes(problem.post_ops, unit), weights.stride(0),
                                  weights.BlockSize(0) * weights.BlockSize(1) / unit.lanes()});
}

}  // namespace tilewire::convolution
