// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/integer_driver.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "engine/primitives/convolution/integer/integer_depthwise_generator.h"

namespace tilewire::convolution {
namespace {

// Every displacement and increment in the generated code is a part of one of these spans.
absl::Status CheckDisplacements(const IntegerProblem& problem) {
  const Geometry& geometry = problem.geometry;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 4;
  std::optional<int64_t> src = problem.block_quads * kQuad;
  for (int d = 0; d < 3 && src; ++d) {
    const int64_t stride = problem.src.spatial[d];
    const auto taps = CheckedProduct({stride, geometry.tap_step[d], geometry.kernel[d]});
    const auto pixels =
        CheckedProduct({stride, geometry.stride[d], std::min<int64_t>(32, geometry.out[d])});
    src = taps && pixels ? CheckedAdd(*src, *taps) : std::nullopt;
    if (src) src = CheckedAdd(*src, *pixels);
  }
  const auto dst = CheckedAdd(4 * problem.dst.block, 32 * problem.dst.spatial[2]);
  for (const std::optional<int64_t>& span : {src, dst, std::optional(problem.weights_ic_block),
                                             std::optional(4 * problem.weights_oc_block)}) {
    if (!span || *span > kLargest) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

Tiling TilingOf(const IntegerProblem& problem) {
  const Geometry& geometry = problem.geometry;
  if (problem.on_matrix_tiles) {
    return MatrixTiling(geometry.out[2], DivUp(geometry.oc, problem.unit().lanes()));
  }
  RegisterBudget budget = {
      .unit = problem.unit(),
      .extra = ExtraIntegerVectors(problem.products),
      .scratch = AccumulatorEpilogue::IntegerScratchCount(problem.epilogue.post_ops)};
  const int64_t blocks = DivUp(geometry.oc, problem.unit().lanes());
  if (!problem.depthwise) return ChooseTiling(geometry.out[2], blocks, budget);
  budget.extra = static_cast<int>(geometry.kernel[2]) + 1;
  Tiling tiling = ChooseTiling(geometry.out[2], 1, budget);
  tiling.oc_groups = SplitEvenly(blocks, blocks);
  return tiling;
}

}  // namespace

absl::StatusOr<IntegerDriver> IntegerDriver::Create(absl::string_view name,
                                                    const IntegerProblem& requested) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(requested));
  IntegerProblem problem = requested;
  FlattenPixels(&problem.geometry, problem.src.spatial, problem.dst.spatial);
  if (!problem.depthwise)  // which keeps the weights of all width taps in registers
    TurnColumns(&problem.geometry, &problem.src.spatial, &problem.dst.spatial);
  std::optional<FlatPlane> plane;
  if (problem.on_matrix_tiles)
    plane = FlattenNarrowPlane(&problem.geometry, problem.src.spatial, problem.dst.spatial);
  const Tiling tiling = TilingOf(problem);
  const int lanes = problem.unit().lanes();
  const int64_t tap_bytes = lanes * (problem.depthwise ? 1 : problem.block_quads * kQuad);
  const WorkSize work = ChooseWorkSize(problem.geometry, tiling, lanes, /*may_chunk=*/false);
  const bool prefetches_weights = work.streams_weights && !problem.depthwise &&
                                  !problem.on_matrix_tiles && problem.geometry.kernel[0] == 1;
  IntegerDriver driver(problem, plane, prefetches_weights,
                       WorkGrid(problem.geometry, tiling, work, problem.src.spatial,
                                problem.dst.spatial, tap_bytes));
  const auto generate = problem.depthwise         ? GenerateIntegerDepthwise
                        : problem.on_matrix_tiles ? GenerateMatrixTile
                                                  : GenerateIntegerTile;
  ABSL_RETURN_IF_ERROR(driver.functions_.Generate(
      tiling,
      [&](const Range& tile, const Range& oc_group) { return driver.ConfigOf(tile, oc_group); },
      [&](const IntegerTileConfig& config) { return generate(name, config); }));
  return driver;
}

IntegerTileConfig IntegerDriver::ConfigOf(const Range& tile, const Range& oc_group) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.unit().lanes();
  const bool last = oc_group.begin + oc_group.size == DivUp(geometry.oc, lanes);
  IntegerTileConfig config{.epilogue = problem_.epilogue};
  config.epilogue.blocks = static_cast<int>(oc_group.size);
  config.epilogue.pixels = static_cast<int>(tile.size);
  config.epilogue.dst_pixel_bytes = problem_.dst.spatial[2];
  config.epilogue.dst_block_bytes = problem_.dst.block;
  config.epilogue.tail_lanes = last ? static_cast<int>(geometry.oc % lanes) : 0;
  config.products = problem_.products;
  config.signed_src = problem_.signed_src;
  config.packed_src = problem_.packed_src;
  config.is_bf16 = problem_.is_bf16;
  config.epilogue.pads_line =
      config.epilogue.dst_type == DataType::kBf16 && oc_group.size < kMatrixBlocks;
  config.input_blocks = geometry.ic / problem_.block_quads;
  if (plane_) config.runs = RunsOf(*plane_, tile, problem_.dst.spatial);
  config.loops = LoopsOf(tile);
  config.fetches_next = geometry.kernel == Spatial{1, 1, 1} && !problem_.depthwise &&
                        !problem_.on_matrix_tiles && geometry.stride[2] == 1 &&
                        config.loops.src_pixel == geometry.ic * kQuad;
  return config;
}

TapLoops IntegerDriver::LoopsOf(const Range& tile) const {
  const Geometry& geometry = problem_.geometry;
  TapLoops loops;
  loops.channels = problem_.block_quads;
  loops.tail_channels = static_cast<int>(geometry.ic % problem_.block_quads);
  loops.full_blocks = geometry.ic >= problem_.block_quads;
  loops.tap_channels = problem_.block_quads;
  loops.src_pixel = problem_.src.spatial[2] * geometry.stride[2];
  loops.src_block = problem_.block_quads * kQuad;
  for (int d = 0; d < 3; ++d) loops.src_tap[d] = problem_.src.spatial[d] * geometry.tap_step[d];
  loops.kernel = geometry.kernel;
  if (problem_.on_matrix_tiles) {
    loops.channels = loops.tap_channels = 1;
    loops.src_channel = kMatrixStepBytes;
    loops.weights_channel = kMatrixWeightsBytes;
  }
  loops.weights_oc_block = problem_.weights_oc_block;
  loops.weights_ic_block = problem_.weights_ic_block;
  for (int64_t pixel = 0; pixel < tile.size; ++pixel)
    loops.taps.push_back(ValidTaps(geometry, 2, tile.begin + pixel));
  loops.calls_ahead = prefetches_weights_ ? grid_.units_per_image() : 0;
  return loops;
}

void IntegerDriver::Run(const Operands& operands, int64_t images,
                        const threading::Team& team) const {
  const int64_t at_once = grid_.PiecesAtOnce(team.threads());
  team.ParallelFor(images * grid_.PiecesPerImage(at_once), [&](int64_t index) {
    const WorkGrid::Piece piece = grid_.PieceAt(index, at_once);
    if (problem_.on_matrix_tiles) return RunOnMatrixTiles(operands, piece);
    for (int64_t i = 0; i < piece.oc_groups.size; ++i) {
      const int64_t oc_group = piece.oc_groups.begin + i;
      grid_.RunUnits(PositionOf(operands, piece, oc_group), functions_.of(oc_group), piece,
                     WeightsAfter(operands, piece, oc_group, images));
    }
  });
}

// Every tile's end runs beside the products of the next, whichever group that belongs to.
void IntegerDriver::RunOnMatrixTiles(const Operands& operands, const WorkGrid::Piece& piece) const {
  const int64_t at_once = std::min(TilesAtOnce(problem_.geometry), piece.units.size);
  MatrixTiles tiles;
  for (int64_t first = 0; first < piece.units.size; first += at_once) {
    const WorkGrid::Piece part = grid_.PartOf(piece, first, at_once);
    for (int64_t i = 0; i < piece.oc_groups.size; ++i) {
      const int64_t oc_group = piece.oc_groups.begin + i;
      IntegerTileArgs position = PositionOf(operands, part, oc_group);
      position.tiles = &tiles;
      grid_.RunUnits(position, functions_.of(oc_group), part, WeightsPrefetch());
    }
  }
  FinishMatrixTiles(&tiles);
}

WeightsPrefetch IntegerDriver::WeightsAfter(const Operands& operands, const WorkGrid::Piece& piece,
                                            int64_t oc_group, int64_t images) const {
  if (!prefetches_weights_) return {};
  const int64_t ic_blocks = DivUp(problem_.geometry.ic, problem_.block_quads);
  return grid_.WeightsAfter(piece, oc_group, /*ic_block=*/0,
                            {.begin = operands.weights,
                             .group = problem_.weights_group,
                             .oc_block = problem_.weights_oc_block,
                             .ic_block = problem_.weights_ic_block,
                             .ic_blocks = ic_blocks,
                             .chunk = ic_blocks,
                             .images = images});
}

// The arguments of a piece for one group of output blocks.
IntegerTileArgs IntegerDriver::PositionOf(const Operands& operands, const WorkGrid::Piece& piece,
                                          int64_t oc_group) const {
  const int64_t image = piece.image, group = piece.group;
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.unit().lanes();
  const int64_t block = grid_.tiling().oc_groups[oc_group].begin;
  const int64_t channel = group * geometry.oc + block * lanes;
  const int64_t padded_channel = group * RoundUp(geometry.oc, lanes) + block * lanes;
  const int64_t bias_bytes = channel * SizeOf(problem_.epilogue.bias_type);
  const int64_t plane = geometry.out[0] * geometry.out[1] * geometry.out[2];
  const bool in_lines = problem_.epilogue.dst_type == DataType::kBf16;
  const int64_t lines = in_lines ? block / kMatrixBlocks : block;
  return {.src = operands.src + image * problem_.src.image + group * problem_.src.group +
                 (problem_.depthwise ? block * problem_.src.block : 0),
          .weights =
              operands.weights + group * problem_.weights_group + block * problem_.weights_oc_block,
          .bias = operands.bias == nullptr ? nullptr : operands.bias + bias_bytes,
          .scales = operands.scales == nullptr ? nullptr : operands.scales + padded_channel,
          .compensation =
              operands.compensation == nullptr ? nullptr : operands.compensation + padded_channel,
          .dst = operands.dst + image * problem_.dst.image + group * problem_.dst.group +
                 lines * problem_.dst.block,
          .loops = {.full_blocks = geometry.ic / problem_.block_quads,
                    .tail_blocks = geometry.ic % problem_.block_quads != 0 ? 1 : 0},
          .pixel_compensation =
              operands.pixel_compensation == nullptr
                  ? nullptr
                  : operands.pixel_compensation + (image * geometry.groups + group) * plane};
}

}  // namespace tilewire::convolution
