// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer_driver.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/integer_depthwise_generator.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kQuadBytes = 4;

// Every displacement and increment in the generated code is a part of one of these spans.
absl::Status CheckDisplacements(const IntegerProblem& problem) {
  const Geometry& geometry = problem.geometry;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 4;
  std::optional<int64_t> src = problem.block_quads * kQuadBytes;
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
    if (!span || *span > kLargest)
      return absl::UnimplementedError("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

}  // namespace

IntegerDriver::IntegerDriver(const IntegerProblem& problem) : problem_(problem) {
  FlattenPixels(&problem_.geometry, problem_.src.spatial, problem_.dst.spatial);
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.isa.lanes;
  full_blocks_ = geometry.ic / problem_.block_quads;
  tail_blocks_ = geometry.ic % problem_.block_quads != 0 ? 1 : 0;
  RegisterFile registers = {
      .lanes = lanes,
      .vectors = problem_.isa.TilingVectors(),
      .scratch = AccumulatorEpilogue::IntegerScratchCount(lanes, problem.epilogue.post_ops)};
  const int64_t blocks = DivUp(geometry.oc, lanes);
  if (problem_.depthwise) {
    registers.vectors = problem_.isa.vectors - static_cast<int>(geometry.kernel[2]) - 1;
    tiling_ = ChooseTiling(geometry.out[2], 1, registers);
    tiling_.oc_groups = SplitEvenly(blocks, blocks);
  } else {
    tiling_ = ChooseTiling(geometry.out[2], blocks, registers);
  }
  work_ = ChooseWorkSize(geometry, tiling_, lanes, /*may_chunk=*/false);
  TabulateOffsets();
  unit_pieces_ = DivUp(rows_.size() * tiles_.size(), work_.units);
  oc_pieces_ = DivUp(tiling_.oc_groups.size(), work_.oc_groups);
}

void IntegerDriver::TabulateOffsets() {
  const Geometry& geometry = problem_.geometry;
  const int64_t tap =
      problem_.isa.lanes * (problem_.depthwise ? 1 : problem_.block_quads * kQuadBytes);
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

absl::StatusOr<IntegerDriver> IntegerDriver::Create(absl::string_view name,
                                                    const IntegerProblem& problem) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(problem));
  IntegerDriver driver(problem);
  ABSL_RETURN_IF_ERROR(driver.Generate(name));
  return driver;
}

IntegerConfig IntegerDriver::ConfigOf(const Range& tile, const Range& oc_group) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.isa.lanes;
  const bool last = oc_group.begin + oc_group.size == DivUp(geometry.oc, lanes);
  IntegerConfig config;
  config.epilogue = problem_.epilogue;
  config.epilogue.lanes = lanes;
  config.epilogue.blocks = static_cast<int>(oc_group.size);
  config.epilogue.pixels = static_cast<int>(tile.size);
  config.epilogue.dst_pixel_bytes = problem_.dst.spatial[2];
  config.epilogue.dst_block_bytes = problem_.dst.block;
  config.epilogue.tail_lanes = last ? static_cast<int>(geometry.oc % lanes) : 0;
  config.vector_registers = problem_.isa.vectors;
  config.dot = problem_.isa.dot;
  config.signed_src = problem_.signed_src;
  config.packed_src = problem_.packed_src;
  config.quads = problem_.block_quads;
  config.tail_quads = static_cast<int>(geometry.ic % problem_.block_quads);
  config.full_blocks = full_blocks_ > 0;
  config.src_pixel = problem_.src.spatial[2] * geometry.stride[2];
  config.src_block = problem_.block_quads * kQuadBytes;
  for (int d = 0; d < 3; ++d) config.src_tap[d] = problem_.src.spatial[d] * geometry.tap_step[d];
  config.kernel = geometry.kernel;
  config.weights_oc_block = problem_.weights_oc_block;
  config.weights_ic_block = problem_.weights_ic_block;
  for (int64_t pixel = 0; pixel < tile.size; ++pixel) {
    config.taps.push_back(ValidTaps(geometry, 2, tile.begin + pixel));
  }
  return config;
}

// Tiles that differ in their place alone share their code.
absl::Status IntegerDriver::Generate(absl::string_view name) {
  using Key = std::tuple<int, int, int, std::vector<std::pair<int64_t, int64_t>>>;
  std::map<Key, IntegerFunction> known;
  for (const Range& oc_group : tiling_.oc_groups) {
    for (const Range& tile : tiling_.tiles) {
      const IntegerConfig config = ConfigOf(tile, oc_group);
      Key key = {config.epilogue.blocks, config.epilogue.pixels, config.epilogue.tail_lanes, {}};
      for (const TapRange& taps : config.taps) std::get<3>(key).push_back({taps.begin, taps.end});
      IntegerFunction& function = known[std::move(key)];
      if (function == nullptr) {
        ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                              problem_.depthwise ? GenerateIntegerDepthwise(name, config)
                                                 : GenerateInteger(name, config));
        function = generator->entry<IntegerFunction>();
        generators_.push_back(std::move(generator));
      }
      functions_.push_back(function);
    }
  }
  return absl::OkStatus();
}

int64_t IntegerDriver::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

void IntegerDriver::Run(const Operands& operands, int64_t images,
                        const threading::Team& team) const {
  team.ParallelFor(images * problem_.geometry.groups * oc_pieces_ * unit_pieces_,
                   [&](int64_t index) { RunPiece(operands, index); });
}

void IntegerDriver::RunPiece(const Operands& operands, int64_t index) const {
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
    RunUnits(ArgsOf(operands, image, group, oc_group), &functions_[oc_group * tiles_.size()],
             units);
  }
}

IntegerArgs IntegerDriver::ArgsOf(const Operands& operands, int64_t image, int64_t group,
                                  int64_t oc_group) const {
  const Geometry& geometry = problem_.geometry;
  const int lanes = problem_.isa.lanes;
  const int64_t block = tiling_.oc_groups[oc_group].begin;
  const int64_t channel = group * geometry.oc + block * lanes;
  const int64_t padded_channel = group * RoundUp(geometry.oc, lanes) + block * lanes;
  const int64_t bias_bytes = channel * SizeOf(problem_.epilogue.bias_type);
  return {.src = operands.src + image * problem_.src.image + group * problem_.src.group +
                 (problem_.depthwise ? block * problem_.src.block : 0),
          .weights =
              operands.weights + group * problem_.weights_group + block * problem_.weights_oc_block,
          .bias = operands.bias == nullptr ? nullptr : operands.bias + bias_bytes,
          .scales = operands.scales + padded_channel,
          .compensation =
              operands.compensation == nullptr ? nullptr : operands.compensation + padded_channel,
          .dst = operands.dst + image * problem_.dst.image + group * problem_.dst.group +
                 block * problem_.dst.block};
}

void IntegerDriver::RunUnits(const IntegerArgs& position, const IntegerFunction* functions,
                             const Range& units) const {
  const int64_t tiles = tiles_.size();
  int64_t tile = units.begin % tiles;
  const Row* row = &rows_[units.begin / tiles];
  IntegerArgs args = position;
  for (int64_t left = units.size; left > 0; --left) {
    args.src = position.src + row->src + tiles_[tile].src;
    args.weights = position.weights + row->weights;
    args.dst = position.dst + row->dst + tiles_[tile].dst;
    args.depth_taps = row->depth_taps;
    args.height_taps = row->height_taps;
    args.full_blocks = row->height_taps == 0 ? 0 : full_blocks_;
    args.tail_blocks = row->height_taps == 0 ? 0 : tail_blocks_;
    functions[tile](&args);
    if (++tile < tiles) continue;
    tile = 0;
    ++row;
  }
}

}  // namespace tilewire::convolution
