// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct_driver.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Sums may wait in dst between chunks unless a sum in the middle of the chain needs what dst held
// before.
bool MayChunk(const PostOps& post_ops) {
  const absl::Span<const PostOp> entries = post_ops.entries();
  for (size_t i = 1; i < entries.size(); ++i) {
    if (std::holds_alternative<SumPostOp>(entries[i])) return false;
  }
  return true;
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

// Every displacement and increment in the generated code is a part of one of these spans.
absl::Status CheckDisplacements(const DirectProblem& problem) {
  const Geometry& geometry = problem.geometry;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / kFloat / 4;
  std::optional<int64_t> src = CheckedMul(problem.src.channel, problem.registers.lanes);
  for (int d = 0; d < 3 && src; ++d) {
    const std::optional<int64_t> taps =
        CheckedProduct({problem.src.spatial[d], geometry.tap_step[d], geometry.kernel[d]});
    const std::optional<int64_t> pixels = CheckedProduct(
        {problem.src.spatial[d], geometry.stride[d], std::min<int64_t>(32, geometry.out[d])});
    src = taps && pixels ? CheckedAdd(*src, *taps + *pixels) : std::nullopt;
  }
  const int64_t taps = geometry.kernel[0] * geometry.kernel[1] * geometry.kernel[2];
  const int64_t weights = taps * problem.registers.lanes * problem.registers.lanes;
  const std::optional<int64_t> dst = CheckedAdd(4 * problem.dst.block, 32 * problem.dst.spatial[2]);
  for (const std::optional<int64_t>& span :
       {src, dst, std::optional(weights), std::optional(problem.src.block),
        std::optional(problem.weights.ic_block)}) {
    if (!span || *span > kLargest)
      return absl::UnimplementedError("strides exceed 32-bit displacements");
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

DirectDriver::DirectDriver(const DirectProblem& problem) : problem_(problem) {
  FlattenPixels(&problem_.geometry, problem_.src.spatial, problem_.dst.spatial);
  problem_.registers.scratch =
      AccumulatorEpilogue::ScratchCount(problem.registers.lanes, problem.post_ops);
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.registers.lanes;
  ic_blocks_ = DivUp(geometry.ic, lanes);
  const int64_t blocks = DivUp(geometry.oc, lanes);
  tiling_ = ChooseTiling(geometry.out[2], problem_.depthwise ? 1 : blocks, problem_.registers);
  if (problem_.depthwise) tiling_.oc_groups = SplitEvenly(blocks, blocks);
  work_ = problem_.depthwise
              ? ChooseDepthwiseWorkSize(geometry, tiling_)
              : ChooseWorkSize(geometry, tiling_, lanes, MayChunk(problem_.post_ops));
  TabulateOffsets();
  unit_pieces_ = DivUp(rows_.size() * tiles_.size(), work_.units);
  oc_pieces_ = DivUp(tiling_.oc_groups.size(), work_.oc_groups);
}

void DirectDriver::TabulateOffsets() {
  const Geometry& geometry = problem_.geometry;
  const int64_t tap = problem_.registers.lanes * problem_.tap_channels;
  const auto src_offset = [&](int d, int64_t o, int64_t first_tap) {
    return (o * geometry.stride[d] + first_tap * geometry.tap_step[d] - geometry.pad[d]) *
           problem_.src.spatial[d];
  };
  for (int64_t od = 0; od < geometry.out[0]; ++od) {
    for (int64_t oh = 0; oh < geometry.out[1]; ++oh) {
      const TapRange depth = ValidTaps(geometry, 0, od), height = ValidTaps(geometry, 1, oh);
      const bool any = depth.end > depth.begin && height.end > height.begin;
      rows_.push_back(
          {.src = src_offset(0, od, depth.begin) + src_offset(1, oh, height.begin),
           .weights = (depth.begin * geometry.kernel[1] + height.begin) * geometry.kernel[2] * tap,
           .dst = od * problem_.dst.spatial[0] + oh * problem_.dst.spatial[1],
           .depth_taps = any ? depth.end - depth.begin : 0,
           .height_taps = any ? height.end - height.begin : 0});
    }
  }
  for (const Range& tile : tiling_.tiles) {
    tiles_.push_back(
        {.src = src_offset(2, tile.begin, 0), .dst = tile.begin * problem_.dst.spatial[2]});
  }
}

absl::StatusOr<DirectDriver> DirectDriver::Create(absl::string_view name,
                                                  const DirectProblem& problem) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(problem));
  DirectDriver driver(problem);
  ABSL_RETURN_IF_ERROR(driver.Generate(name));
  return driver;
}

DirectConfig DirectDriver::ConfigOf(const Range& tile, const Range& oc_group) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.registers.lanes;
  DirectConfig config;
  config.epilogue.lanes = lanes;
  config.epilogue.blocks = static_cast<int>(oc_group.size);
  config.epilogue.pixels = static_cast<int>(tile.size);
  config.epilogue.dst_pixel_bytes = problem_.dst.spatial[2] * kFloat;
  config.epilogue.dst_block_bytes = problem_.dst.block * kFloat;
  config.epilogue.bias = problem_.has_bias;
  const bool last = oc_group.begin + oc_group.size == DivUp(geometry.oc, lanes);
  config.epilogue.tail_lanes = last ? static_cast<int>(geometry.oc % lanes) : 0;
  config.epilogue.post_ops = problem_.post_ops;
  config.vector_registers = problem_.registers.vectors;
  config.full_blocks = geometry.ic >= lanes;
  config.tail_channels = static_cast<int>(geometry.ic % lanes);
  config.src_channel = problem_.src.channel * kFloat;
  config.src_pixel = problem_.src.spatial[2] * geometry.stride[2] * kFloat;
  config.src_block = problem_.src.block * kFloat;
  for (int d = 0; d < 3; ++d) {
    config.src_tap[d] = problem_.src.spatial[d] * geometry.tap_step[d] * kFloat;
  }
  config.kernel = geometry.kernel;
  config.weights_oc_block = problem_.weights.oc_block * kFloat;
  config.weights_ic_block = problem_.weights.ic_block * kFloat;
  for (int64_t pixel = 0; pixel < tile.size; ++pixel) {
    config.taps.push_back(ValidTaps(geometry, 2, tile.begin + pixel));
  }
  config.depthwise = problem_.depthwise;
  config.tap_channels = problem_.tap_channels;
  config.chunked = work_.ic_blocks < ic_blocks_;
  return config;
}

// Tiles that differ in their place alone share their code.
absl::Status DirectDriver::Generate(absl::string_view name) {
  using Key = std::tuple<int, int, int, std::vector<std::pair<int64_t, int64_t>>>;
  std::map<Key, DirectFunction> known;
  for (const Range& oc_group : tiling_.oc_groups) {
    for (const Range& tile : tiling_.tiles) {
      const DirectConfig config = ConfigOf(tile, oc_group);
      Key key = {config.epilogue.blocks, config.epilogue.pixels, config.epilogue.tail_lanes, {}};
      for (const TapRange& taps : config.taps) std::get<3>(key).push_back({taps.begin, taps.end});
      DirectFunction& function = known[std::move(key)];
      if (function == nullptr) {
        ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                              GenerateDirect(name, config));
        function = generator->entry<DirectFunction>();
        generators_.push_back(std::move(generator));
      }
      functions_.push_back(function);
    }
  }
  return absl::OkStatus();
}

int64_t DirectDriver::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

void DirectDriver::Run(const float* src, const float* weights, const float* bias, float* dst,
                       const threading::Team& team) const {
  const Operands operands = {src, weights, bias, dst};
  const Geometry& geometry = problem_.geometry;
  team.ParallelFor(geometry.batch * geometry.groups * oc_pieces_ * unit_pieces_,
                   [&](int64_t index) { RunPiece(operands, index); });
}

void DirectDriver::RunPiece(const Operands& operands, int64_t index) const {
  const int64_t all_units = rows_.size() * tiles_.size();
  Range units;
  units.begin = index % unit_pieces_ * work_.units;
  units.size = std::min(work_.units, all_units - units.begin);
  index /= unit_pieces_;
  const int64_t first_group = index % oc_pieces_ * work_.oc_groups;
  const int64_t end_group =
      std::min<int64_t>(tiling_.oc_groups.size(), first_group + work_.oc_groups);
  index /= oc_pieces_;
  const int64_t image = index / problem_.geometry.groups, group = index % problem_.geometry.groups;
  for (int64_t oc_group = first_group; oc_group < end_group; ++oc_group) {
    for (int64_t block = 0; block < ic_blocks_; block += work_.ic_blocks) {
      RunUnits(PositionOf(operands, image, group, oc_group, block), units);
    }
  }
}

DirectDriver::Position DirectDriver::PositionOf(const Operands& operands, int64_t image,
                                                int64_t group, int64_t oc_group,
                                                int64_t ic_block) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.registers.lanes;
  const int64_t oc_block = tiling_.oc_groups[oc_group].begin;
  const int64_t src_block = problem_.depthwise ? oc_block : ic_block;
  const int64_t blocks = std::min(work_.ic_blocks, ic_blocks_ - ic_block);
  const bool last = ic_block + blocks == ic_blocks_;
  Position position;
  position.args.src = operands.src + image * problem_.src.image + group * problem_.src.group +
                      src_block * problem_.src.block;
  position.args.weights = operands.weights + group * problem_.weights.group +
                          oc_block * problem_.weights.oc_block +
                          ic_block * problem_.weights.ic_block;
  position.args.bias =
      operands.bias == nullptr ? nullptr : operands.bias + group * geometry.oc + oc_block * lanes;
  position.args.dst = operands.dst + image * problem_.dst.image + group * problem_.dst.group +
                      oc_block * problem_.dst.block;
  position.args.first = ic_block == 0;
  position.args.last = last;
  position.tail_blocks = last && geometry.ic % lanes != 0 ? 1 : 0;
  position.full_blocks = blocks - position.tail_blocks;
  position.functions = &functions_[oc_group * tiles_.size()];
  return position;
}

void DirectDriver::RunUnits(const Position& position, const Range& units) const {
  const int64_t tiles = tiles_.size();
  int64_t tile = units.begin % tiles;
  const Row* row = &rows_[units.begin / tiles];
  DirectArgs args = position.args;
  for (int64_t left = units.size; left > 0; --left) {
    args.src = position.args.src + row->src + tiles_[tile].src;
    args.weights = position.args.weights + row->weights;
    args.dst = position.args.dst + row->dst + tiles_[tile].dst;
    args.depth_taps = row->depth_taps;
    args.height_taps = row->height_taps;
    args.full_blocks = row->height_taps == 0 ? 0 : position.full_blocks;
    args.tail_blocks = row->height_taps == 0 ? 0 : position.tail_blocks;
    position.functions[tile](&args);
    if (++tile < tiles) continue;
    tile = 0;
    ++row;
  }
}

}  // namespace tilewire::convolution
