// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/direct_driver.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <variant>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/few_outputs_generator.h"
#include "engine/primitives/driven_primitive.h"

namespace tilewire::convolution {
namespace {

// Sums may wait in dst between chunks unless it holds narrower numbers or a sum in the middle of
// the chain needs what it held before.
bool MayChunk(const DirectProblem& problem) {
  if (problem.dst_type != DataType::kF32) return false;
  const absl::Span<const PostOp> entries = problem.post_ops.entries();
  for (size_t i = 1; i < entries.size(); ++i) {
    if (std::holds_alternative<SumPostOp>(entries[i])) return false;
  }
  return true;
}

constexpr int64_t kFewLanes = 8;

// Whether tiles are of few lanes and windows of one tap, which are soon done.
bool IsFewLanesOfOneTap(const DirectProblem& problem) {
  return problem.unit.lanes() <= kFewLanes && problem.geometry.kernel == Spatial{1, 1, 1} &&
         !problem.depthwise && !problem.few_outputs;
}

// Where a step has few lanes, the weights of a window of one tap come from the second cache more
// slowly than they are multiplied. No result changes: an addend in dst, with which chunks would
// begin, goes without them.
bool ChunksForFirstCache(const DirectProblem& problem) {
  return MayChunk(problem) && !problem.post_ops.HasSum() && IsFewLanesOfOneTap(problem);
}

// Depthwise there is nothing to keep in cache for other channels: whole images of as many blocks as
// leave eight pieces for several threads.
WorkSize ChooseDepthwiseWorkSize(const Geometry& geometry, const Tiling& tiling) {
  constexpr int64_t kPieces = 8;
  const int64_t groups = tiling.oc_groups.size();
  const int64_t units =
      geometry.out[0] * geometry.out[1] * static_cast<int64_t>(tiling.tiles.size());
  WorkSize work;
  work.oc_groups = std::max<int64_t>(1, groups / kPieces);
  work.units = std::max<int64_t>(1, DivUp(units, DivUp(kPieces, groups)));
  return work;
}

// Where outputs are few, all of them for as many pixels as have a source that stays in the second
// cache, and as leave eight pieces.
WorkSize ChooseFewOutputsWorkSize(const Geometry& geometry, const Tiling& tiling, int lanes) {
  constexpr int64_t kPieces = 8;
  WorkSize work = ChooseWorkSize(geometry, tiling, lanes, /*may_chunk=*/false);
  const int64_t units =
      geometry.out[0] * geometry.out[1] * static_cast<int64_t>(tiling.tiles.size());
  work.units = std::min(work.units, DivUp(units, kPieces));
  work.oc_groups = static_cast<int64_t>(tiling.oc_groups.size());
  work.streams_weights = false;
  return work;
}

WorkSize WorkSizeOf(const DirectProblem& problem, const Tiling& tiling) {
  const int lanes = problem.unit.lanes();
  if (problem.depthwise) return ChooseDepthwiseWorkSize(problem.geometry, tiling);
  if (problem.few_outputs) return ChooseFewOutputsWorkSize(problem.geometry, tiling, lanes);
  const WorkSize work = ChooseWorkSize(problem.geometry, tiling, lanes, MayChunk(problem));
  if (!ChunksForFirstCache(problem)) return work;
  return WithChunksOfFirstCache(work, problem.geometry, tiling, lanes);
}

// Displacements and increments in generated code that are larger than this, in elements, might not
// fit 32 bits: a tile goes over four blocks at most.
constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 4;

// Blocks of dst that are too far apart for one tile, as those of large volumes, have a tile each.
Tiling TilingOf(const DirectProblem& problem) {
  const int64_t outputs = problem.geometry.oc;
  if (problem.few_outputs) {
    const int64_t pixels = problem.geometry.out[2];
    return {SplitEvenly(pixels, DivUp(pixels, problem.unit.lanes())),
            SplitEvenly(outputs, outputs)};
  }
  const int64_t blocks = DivUp(problem.geometry.oc, problem.unit.lanes());
  const bool one_block = problem.depthwise || problem.dst.block > kLargestSpan / 4;
  const int64_t row = problem.geometry.out[2];
  // A part of a vector, or narrow numbers, are loaded into a register of their own before they are
  // added.
  const bool loads_addend = problem.packed_dst || problem.dst_type != DataType::kF32;
  const int scratch = std::max(AccumulatorEpilogue::ScratchCount(problem.post_ops),
                               loads_addend && problem.post_ops.HasSum() ? 2 : 0);
  const RegisterBudget budget = {.unit = problem.unit, .scratch = scratch};
  Tiling tiling = ChooseTiling(row, one_block ? 1 : blocks, budget);
  if (one_block) tiling.oc_groups = SplitEvenly(blocks, blocks);
  return tiling;
}

// Every displacement and increment in the generated code lies within one of these spans, but for
// the increment between blocks of src, which may take 64 bits.
absl::Status CheckDisplacements(const DirectProblem& problem) {
  const Geometry& geometry = problem.geometry;
  std::optional<int64_t> src =
      CheckedMul(problem.src.channel, std::min<int64_t>(problem.unit.lanes(), geometry.ic));
  for (int d = 0; d < 3 && src; ++d) {
    const std::optional<int64_t> taps =
        CheckedProduct({problem.src.spatial[d], geometry.tap_step[d], geometry.kernel[d]});
    const std::optional<int64_t> pixels = CheckedProduct(
        {problem.src.spatial[d], geometry.stride[d], std::min<int64_t>(32, geometry.out[d])});
    src = taps && pixels ? CheckedAdd(*src, *taps + *pixels) : std::nullopt;
  }
  const int64_t taps = geometry.kernel[0] * geometry.kernel[1] * geometry.kernel[2];
  const int64_t weights = taps * problem.unit.lanes() * problem.unit.lanes();
  const std::optional<int64_t> dst = CheckedMul(32, problem.dst.spatial[2]);
  for (const std::optional<int64_t>& span :
       {src, dst, std::optional(weights), std::optional(problem.weights.ic_block)}) {
    if (!span || *span > kLargestSpan) return Unimplemented("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

struct DirectDriver::Operands {
  const float* src;
  const float* weights;
  const float* bias;
  float* dst;
};

DirectDriver::DirectDriver(const DirectProblem& problem, const WorkSize& work, WorkGrid grid)
    : problem_(problem),
      work_(work),
      grid_(std::move(grid)),
      ic_blocks_(DivUp(problem.geometry.ic, problem.unit.lanes())),
      tail_blocks_(problem.geometry.ic % problem.unit.lanes() == 0 ? 0 : 1),
      slopes_(problem.few_outputs ? VectorsOfSlopes(problem.post_ops, problem.unit)
                                  : PaddedSlopes(problem.post_ops, problem.unit)) {}

absl::StatusOr<DirectDriver> DirectDriver::Create(absl::string_view name,
                                                  const DirectProblem& requested) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(requested));
  DirectProblem problem = requested;
  FlattenPixels(&problem.geometry, problem.src.spatial, problem.dst.spatial);
  if (!problem.few_outputs)
    TurnColumns(&problem.geometry, &problem.src.spatial, &problem.dst.spatial);
  const Geometry& geometry = problem.geometry;
  const int lanes = problem.unit.lanes();
  const Tiling tiling = TilingOf(problem);
  const WorkSize work = WorkSizeOf(problem, tiling);
  DirectDriver driver(problem, work,
                      WorkGrid(geometry, tiling, work, problem.src.spatial, problem.dst.spatial,
                               /*tap_weights=*/lanes * problem.tap_channels));
  ABSL_RETURN_IF_ERROR(driver.functions_.Generate(
      tiling,
      [&](const Range& tile, const Range& oc_group) { return driver.ConfigOf(tile, oc_group); },
      [&](const DirectConfig& config) {
        const int tail_channels = static_cast<int>(geometry.ic % lanes);
        return problem.few_outputs ? GenerateFewOutputs(name, config, tail_channels)
                                   : GenerateDirect(name, config);
      }));
  return driver;
}

// The pixels of src that the row of dst below a tile reads first, in bytes from the one that tap 0
// of the tile's first pixel reads.
std::vector<int64_t> DirectDriver::PixelsBelow(int64_t tile_pixels) const {
  const Geometry& geometry = problem_.geometry;
  const int64_t row = (geometry.kernel[1] - 1) * geometry.tap_step[1] + 1;
  std::vector<int64_t> below;
  for (int64_t pixel = 0; pixel < tile_pixels; ++pixel) {
    below.push_back((row * problem_.src.spatial[1] + pixel * problem_.src.spatial[2]) *
                    kFloatBytes);
  }
  return below;
}

EpilogueConfig DirectDriver::EpilogueOf(const Range& tile, const Range& oc_group) const {
  const int lanes = problem_.unit.lanes();
  const int64_t end = oc_group.begin + oc_group.size;
  const bool last = end == DivUp(problem_.geometry.oc, lanes);
  EpilogueConfig epilogue = {.unit = problem_.unit};
  epilogue.blocks = static_cast<int>(oc_group.size);
  epilogue.pixels = static_cast<int>(tile.size);
  epilogue.dst_pixel_bytes = problem_.dst.spatial[2] * kFloatBytes;
  epilogue.dst_block_bytes = problem_.dst.block * kFloatBytes;
  epilogue.bias = problem_.has_bias;
  epilogue.tail_lanes =
      last && !problem_.few_outputs ? static_cast<int>(problem_.geometry.oc % lanes) : 0;
  epilogue.packed_channels = problem_.packed_dst;
  epilogue.post_ops = problem_.post_ops;
  epilogue.dst_type = problem_.dst_type;
  epilogue.begins_inside_line = oc_group.begin % 2 == 1;
  epilogue.pads_line = last && end % 2 == 1;
  return epilogue;
}

DirectConfig DirectDriver::ConfigOf(const Range& tile, const Range& oc_group) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.unit.lanes();
  DirectConfig config{.epilogue = EpilogueOf(tile, oc_group)};
  config.packed_src = problem_.packed_src;
  config.fetches_next_tile = FetchesNextTile(tile);
  config.fetches_dst = FetchesDst();
  if (FetchesPixelsBelow()) config.pixels_below = PixelsBelow(tile.size);
  TapLoops& loops = config.loops;
  loops.channels = lanes;
  loops.tail_channels = static_cast<int>(geometry.ic % lanes);
  if (problem_.few_outputs) {
    loops.channels = 1;
    loops.tail_channels = std::min(1, loops.tail_channels);
  }
  loops.full_blocks = geometry.ic >= lanes;
  loops.tap_channels = problem_.tap_channels;
  loops.src_channel = problem_.src.channel * kFloatBytes;
  loops.src_pixel = problem_.src.spatial[2] * geometry.stride[2] * kFloatBytes;
  loops.src_block = problem_.src.block * kFloatBytes;
  for (int d = 0; d < 3; ++d)
    loops.src_tap[d] = problem_.src.spatial[d] * geometry.tap_step[d] * kFloatBytes;
  loops.kernel = geometry.kernel;
  loops.weights_oc_block = problem_.weights.oc_block * kFloatBytes;
  loops.weights_ic_block = problem_.weights.ic_block * kFloatBytes;
  for (int64_t pixel = 0; pixel < tile.size; ++pixel)
    loops.taps.push_back(ValidTaps(geometry, 2, tile.begin + pixel));
  config.depthwise = problem_.depthwise;
  config.pairs = problem_.pairs;
  config.chunked = work_.ic_blocks < ic_blocks_;
  loops.calls_ahead = PrefetchesWeights() ? grid_.units_per_image() : 0;
  return config;
}

void DirectDriver::Run(const float* src, const float* weights, const float* bias, float* dst,
                       const threading::Team& team) const {
  const Operands operands = {src, weights, bias, dst};
  const int64_t at_once = grid_.PiecesAtOnce(team.threads());
  team.ParallelFor(problem_.geometry.batch * grid_.PiecesPerImage(at_once),
                   [&](int64_t index) { RunPiece(operands, grid_.PieceAt(index, at_once)); });
}

void DirectDriver::RunPiece(const Operands& operands, const WorkGrid::Piece& piece) const {
  for (int64_t i = 0; i < piece.oc_groups.size; ++i) {
    const int64_t oc_group = piece.oc_groups.begin + i;
    for (int64_t block = 0; block < ic_blocks_; block += work_.ic_blocks) {
      grid_.RunUnits(PositionOf(operands, piece, oc_group, block), functions_.of(oc_group), piece,
                     WeightsAfter(operands, piece, oc_group, block));
    }
  }
}

// The arguments of a piece for one group of output blocks and one chunk of input channels.
DirectArgs DirectDriver::PositionOf(const Operands& operands, const WorkGrid::Piece& piece,
                                    int64_t oc_group, int64_t ic_block) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.unit.lanes();
  const int64_t image = piece.image, group = piece.group;
  const int64_t oc_block = grid_.tiling().oc_groups[oc_group].begin;
  const int64_t src_block = problem_.depthwise ? oc_block : ic_block;
  const int64_t blocks = std::min(work_.ic_blocks, ic_blocks_ - ic_block);
  const bool last = ic_block + blocks == ic_blocks_;
  DirectArgs args;
  args.src = operands.src + image * problem_.src.image + group * problem_.src.group +
             src_block * problem_.src.block;
  args.weights = operands.weights + group * problem_.weights.group +
                 oc_block * problem_.weights.oc_block + ic_block * problem_.weights.ic_block;
  const int64_t first_channel = group * geometry.oc + oc_block * (problem_.few_outputs ? 1 : lanes);
  args.bias = operands.bias == nullptr ? nullptr : operands.bias + first_channel;
  const int64_t slopes_before = first_channel * (problem_.few_outputs ? lanes : 1);
  args.slopes = slopes_.empty() ? nullptr : slopes_.data() + slopes_before;
  args.dst = operands.dst + image * problem_.dst.image + group * problem_.dst.group;
  if (problem_.dst_type == DataType::kBf16) {
    args.dst += oc_block / 2 * problem_.dst.block + oc_block % 2 * (lanes / 2);
  } else {
    args.dst += oc_block * problem_.dst.block;
  }
  args.first = ic_block == 0;
  args.last = last;
  args.loops.tail_blocks = last ? tail_blocks_ : 0;
  args.loops.full_blocks = blocks - args.loops.tail_blocks;
  return args;
}

// The vectors of neighbouring pixels lie in one line each, where the core does not fetch the next
// one by itself. Those of small images are near anyway, those of larger ones too far.
bool DirectDriver::FetchesPixelsBelow() const {
  constexpr int64_t kSmall = 256 << 10, kLarge = 1 << 20;
  const Geometry& geometry = problem_.geometry;
  const int64_t bytes = geometry.in[1] * geometry.in[2] * geometry.oc * kFloatBytes;
  return problem_.packed_src && geometry.stride == Spatial{1, 1, 1} && bytes >= kSmall &&
         bytes <= kLarge;
}

// Blocks of channels of a window of one tap are so many streams that the core follows none of
// them. The next tile's part of all blocks arrives while this one computes, if it is a part of the
// first cache. With strides it is not: most of each fetched line is between the pixels.
bool DirectDriver::FetchesNextTile(const Range& tile) const {
  constexpr int64_t kPartOfFirstCache = 12 * 1024;
  const Geometry& geometry = problem_.geometry;
  return IsFewLanesOfOneTap(problem_) && geometry.stride == Spatial{1, 1, 1} &&
         std::min(geometry.ic, work_.ic_blocks * kFewLanes) * tile.size * kFloatBytes <=
             kPartOfFirstCache;
}

// The lines of dst of such a tile lie in as many places as it has blocks: stores that wait for them
// would hold up the next tile.
bool DirectDriver::FetchesDst() const {
  return IsFewLanesOfOneTap(problem_) && problem_.dst_type == DataType::kF32;
}

// Only without depth, when a register is free.
bool DirectDriver::PrefetchesWeights() const {
  return work_.streams_weights && !problem_.depthwise && problem_.geometry.kernel[0] == 1 &&
         problem_.tap_channels == problem_.unit.lanes();
}

// Whether all weights stay in the second cache beside two images of src and one of dst, and images
// of src are too large to stay there, too: then it is the next image that comes from memory.
bool DirectDriver::KeepsWeights() const {
  constexpr int64_t kLargeImage = 256 << 10;
  const Geometry& geometry = problem_.geometry;
  const int64_t src = ic_blocks_ * problem_.src.block * kFloatBytes;
  const int64_t others = geometry.oc * (geometry.ic + geometry.out[1] * geometry.out[2]);
  return geometry.kernel == Spatial{1, 1, 1} && geometry.groups == 1 && geometry.batch > 1 &&
         src >= kLargeImage && 2 * src + others * kFloatBytes <= problem_.second_cache;
}

// The share of the next image of src that is fetched with a group of output blocks and a chunk of
// input channels.
WeightsPrefetch DirectDriver::NextImage(const Operands& operands, const WorkGrid::Piece& piece,
                                        int64_t oc_group, int64_t ic_block) const {
  if (piece.image + 1 == problem_.geometry.batch) return {};
  const int64_t groups = static_cast<int64_t>(grid_.tiling().oc_groups.size());
  const int64_t bytes = DivUp(ic_blocks_ * problem_.src.block * kFloatBytes, groups);
  const int64_t blocks = std::min(work_.ic_blocks, ic_blocks_ - ic_block);
  const auto* image = reinterpret_cast<const std::byte*>(
      operands.src + (piece.image + 1) * problem_.src.image + piece.group * problem_.src.group);
  const int64_t share = bytes * blocks / ic_blocks_;
  return WeightsPrefetch(image + oc_group * bytes + bytes * ic_block / ic_blocks_, share, share, 1,
                         /*skipped=*/0);
}

WeightsPrefetch DirectDriver::WeightsAfter(const Operands& operands, const WorkGrid::Piece& piece,
                                           int64_t oc_group, int64_t ic_block) const {
  if (!PrefetchesWeights()) return {};
  if (KeepsWeights()) return NextImage(operands, piece, oc_group, ic_block);
  const WeightsStrides& strides = problem_.weights;
  return grid_.WeightsAfter(piece, oc_group, ic_block,
                            {.begin = reinterpret_cast<const std::byte*>(operands.weights),
                             .group = strides.group * kFloatBytes,
                             .oc_block = strides.oc_block * kFloatBytes,
                             .ic_block = strides.ic_block * kFloatBytes,
                             .ic_blocks = ic_blocks_,
                             .chunk = work_.ic_blocks,
                             .images = problem_.geometry.batch});
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDirectPrimitive(const DirectProblem& problem,
                                                                 PrimitiveInfo info) {
  ABSL_ASSIGN_OR_RETURN(DirectDriver driver, DirectDriver::Create(info.name, problem));
  return MakeDriven(
      std::move(info), std::move(driver), [](const DirectDriver& direct, const DrivenRun& run) {
        direct.Run(run.First<const float>(kArgSrc), run.First<const float>(kArgWeights),
                   run.First<const float>(kArgBias), run.First<float>(kArgDst), run.team);
      });
}

}  // namespace tilewire::convolution
