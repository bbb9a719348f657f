// SPDX-License-Identifier: Apache-2.0
//
// How the pieces of a Winograd convolution come together. Three generated functions do the work:
//
//   input     patches of (tile + 2)^2 pixels of src become as many points, V    (once per tile)
//   multiply  for each point, tiles x input channels times input x output channels gives M
//   output    points of M become tile^2 pixels of dst, with bias and post-ops   (once per tile)
//
// Each point is a matrix product of its own; weights have been transformed to one matrix per point
// by a reorder. So the whole is: transform the inputs of a block of tiles; then, for each panel of
// output channels, multiply all points and transform the outputs of the panel at once, while its
// products are in the cache. A block is large enough to make up for reading the weights once, and
// V and M of one block, not of all tiles, are in the scratchpad.
//
// A block either belongs to one thread (RunAlone), when its V fits the second cache, or to all
// (RunShared), when there are so many channels that only large blocks make up for the weights; see
// winograd_plan.h. Each thread that works on blocks, or on panels of a shared one, has a slot of
// the scratchpad: see threading/slots.h.
//
// Borders: a patch that reaches beyond the image is copied, with zeros around it, before its
// transform; a tile that dst's last rows or columns cut has an output function that writes the rest
// only; the last output channels, if they do not fill a vector, have functions of their own.
#include "engine/primitives/convolution/winograd_driver.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/threading/slots.h"

namespace tilewire::convolution {
namespace {

constexpr int kMaxSide = 6;
constexpr int kMaxLanes = 16;

// Every displacement and increment in the generated code lies within one of these spans.
absl::Status CheckDisplacements(const WinogradProblem& problem) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / kFloatBytes;
  const WinogradPlan& plan = problem.plan;
  const std::optional<int64_t> row = CheckedMul(plan.tile(), problem.dst.spatial[1]);
  const std::optional<int64_t> column = CheckedMul(plan.tile(), problem.dst.spatial[2]);
  for (const std::optional<int64_t>& span :
       {row, column, std::optional(problem.dst.block), std::optional(plan.VElements()),
        std::optional(plan.MElements())}) {
    if (!span || *span > kLargest)
      return absl::UnimplementedError("strides exceed 32-bit displacements");
  }
  return absl::OkStatus();
}

// The part of [first, first + side) that lies inside [0, size), counted from `first`.
TapRange Inside(int64_t first, int64_t side, int64_t size) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, side);
  return {begin, std::clamp<int64_t>(size - first, begin, side)};
}

}  // namespace

absl::StatusOr<WinogradDriver> WinogradDriver::Create(absl::string_view name,
                                                      const WinogradProblem& problem) {
  ABSL_RETURN_IF_ERROR(CheckDisplacements(problem));
  WinogradDriver driver(problem);
  ABSL_RETURN_IF_ERROR(driver.Generate(name));
  return driver;
}

WinogradDriver::WinogradDriver(const WinogradProblem& problem)
    : problem_(problem), slopes_(PaddedSlopes(problem.post_ops, problem.unit)) {
  const WinogradPlan& plan = problem.plan;
  const int64_t pieces = plan.shared ? plan.panels : plan.Blocks(problem.geometry.batch);
  slots_ = std::min<int64_t>(pieces, cpu::GrantedCores());
}

template <typename Function>
Function WinogradDriver::Keep(std::unique_ptr<const jit::Generator> generator) {
  generators_.push_back(std::move(generator));
  return generators_.back()->entry<Function>();
}

absl::Status WinogradDriver::Generate(absl::string_view name) {
  const WinogradPlan& plan = problem_.plan;
  const int lanes = problem_.unit.lanes();
  ABSL_ASSIGN_OR_RETURN(
      auto input, GenerateWinogradInput(absl::StrCat(name, ".input"),
                                        {.unit = problem_.unit,
                                         .tile = plan.tile(),
                                         .point_bytes = plan.VPoint() * kFloatBytes,
                                         .block_bytes = plan.group_tiles * lanes * kFloatBytes}));
  input_ = Keep<WinogradInputFunction>(std::move(input));
  WinogradGemmConfig config{.unit = problem_.unit,
                            .tiles = static_cast<int>(plan.group_tiles),
                            .blocks = plan.weights.panel_blocks,
                            .input_blocks = plan.input_blocks,
                            .groups = plan.block_groups};
  ABSL_ASSIGN_OR_RETURN(auto multiply, GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
  multiply_ = multiply_last_ = Keep<WinogradGemmFunction>(std::move(multiply));
  const int64_t last_blocks = plan.weights.BlocksOfPanel(problem_.geometry.oc, plan.panels - 1);
  const int tail_lanes = static_cast<int>(problem_.geometry.oc % lanes);
  if (last_blocks != config.blocks || tail_lanes != 0) {
    config.blocks = static_cast<int>(last_blocks);
    config.tail_lanes = tail_lanes;
    ABSL_ASSIGN_OR_RETURN(auto multiply_last,
                          GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
    multiply_last_ = Keep<WinogradGemmFunction>(std::move(multiply_last));
  }
  ABSL_RETURN_IF_ERROR(GenerateOutputs(name, /*tail_lanes=*/0, &output_));
  output_tail_ = output_;
  return tail_lanes == 0 ? absl::OkStatus() : GenerateOutputs(name, tail_lanes, &output_tail_);
}

absl::Status WinogradDriver::GenerateOutputs(absl::string_view name, int tail_lanes,
                                             OutputFunctions* functions) {
  const WinogradPlan& plan = problem_.plan;
  const int lanes = problem_.unit.lanes();
  const int last_rows = static_cast<int>((problem_.geometry.out[1] - 1) % plan.tile() + 1);
  const int last_columns = static_cast<int>((problem_.geometry.out[2] - 1) % plan.tile() + 1);
  for (const bool cut_rows : {false, true}) {
    for (const bool cut_columns : {false, true}) {
      WinogradOutputConfig config{.unit = problem_.unit,
                                  .tile = plan.tile(),
                                  .point_bytes = plan.MPoint() * kFloatBytes,
                                  .block_bytes = plan.group_tiles * lanes * kFloatBytes,
                                  .rows = cut_rows ? last_rows : plan.tile(),
                                  .columns = cut_columns ? last_columns : plan.tile(),
                                  .dst_row_bytes = problem_.dst.spatial[1] * kFloatBytes,
                                  .dst_pixel_bytes = problem_.dst.spatial[2] * kFloatBytes,
                                  .dst_block_bytes = problem_.dst.block * kFloatBytes,
                                  .bias = problem_.has_bias,
                                  .tail_lanes = tail_lanes,
                                  .post_ops = problem_.post_ops,
                                  .pools = problem_.pools};
      WinogradOutputFunction& function = functions->by_cut[cut_rows][cut_columns];
      ABSL_ASSIGN_OR_RETURN(auto output,
                            GenerateWinogradOutput(absl::StrCat(name, ".output"), config));
      function = Keep<WinogradOutputFunction>(std::move(output));
    }
  }
  return absl::OkStatus();
}

int64_t WinogradDriver::scratchpad_bytes() const {
  const WinogradPlan& plan = problem_.plan;
  return ((plan.shared ? 1 : slots_) * plan.VElements() + slots_ * plan.MElements()) * kFloatBytes;
}

int64_t WinogradDriver::code_bytes() const {
  int64_t bytes = 0;
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

void WinogradDriver::Run(const float* src, const float* weights, const float* bias, float* dst,
                         float* scratchpad, const threading::Team& team) const {
  const Operands operands = {src, weights, bias, dst};
  const WinogradPlan& plan = problem_.plan;
  const int64_t blocks = plan.Blocks(problem_.geometry.batch);
  if (plan.shared) {
    for (int64_t i = 0; i < blocks; ++i) RunShared(operands, BlockAt(i, scratchpad), team);
    return;
  }
  threading::ParallelForInSlots(team, blocks, slots_, [&](int64_t i, int64_t slot) {
    RunAlone(operands, BlockAt(i, scratchpad + slot * (plan.VElements() + plan.MElements())));
  });
}

WinogradDriver::Block WinogradDriver::BlockAt(int64_t index, float* v) const {
  const WinogradPlan& plan = problem_.plan;
  Block block;
  block.first = index * plan.BlockTiles();
  block.count =
      std::min(plan.BlockTiles(), problem_.geometry.batch * plan.ImageTiles() - block.first);
  block.groups = DivUp(block.count, plan.group_tiles);
  block.v = v;
  return block;
}

WinogradDriver::TilePosition WinogradDriver::PositionOf(int64_t tile) const {
  const WinogradPlan& plan = problem_.plan;
  const int64_t in_image = tile % plan.ImageTiles();
  return {tile / plan.ImageTiles(), in_image / plan.tile_columns * plan.tile(),
          in_image % plan.tile_columns * plan.tile()};
}

// With few channels, divisions for every tile would cost noticeable time.
void WinogradDriver::Advance(TilePosition* position) const {
  const WinogradPlan& plan = problem_.plan;
  position->column += plan.tile();
  if (position->column < plan.tile_columns * plan.tile()) return;
  position->column = 0;
  position->row += plan.tile();
  if (position->row < plan.tile_rows * plan.tile()) return;
  position->row = 0;
  ++position->image;
}

void WinogradDriver::RunAlone(const Operands& operands, const Block& block) const {
  for (int64_t group = 0; group < block.groups; ++group) TransformInputs(operands, block, group);
  float* m = block.v + problem_.plan.VElements();
  for (int64_t panel = 0; panel < problem_.plan.panels; ++panel) {
    RunPanel(operands, block, panel, m);
  }
}

void WinogradDriver::RunShared(const Operands& operands, const Block& block,
                               const threading::Team& team) const {
  const WinogradPlan& plan = problem_.plan;
  float* m = block.v + plan.VElements();
  team.ParallelFor(block.groups, [&](int64_t i) { TransformInputs(operands, block, i); });
  threading::ParallelForInSlots(team, plan.panels, slots_, [&](int64_t panel, int64_t slot) {
    RunPanel(operands, block, panel, m + slot * plan.MElements());
  });
}

void WinogradDriver::RunPanel(const Operands& operands, const Block& block, int64_t panel,
                              float* m) const {
  for (int64_t point = 0; point < problem_.plan.points(); ++point) {
    Multiply(operands, block, panel, point, m + point * problem_.plan.MPoint());
  }
  for (int64_t group = 0; group < block.groups; ++group) {
    TransformOutputs(operands, block, panel, group, m);
  }
}

void WinogradDriver::TransformInputs(const Operands& operands, const Block& block,
                                     int64_t group) const {
  const WinogradPlan& plan = problem_.plan;
  const int64_t first = group * plan.group_tiles;
  const int64_t end = std::min(first + plan.group_tiles, block.count);
  float* v = block.v + group * plan.VGroup();
  TilePosition position = PositionOf(block.first + first);
  for (int64_t tile = first; tile < end; ++tile, Advance(&position)) {
    TransformInput(operands.src + position.image * problem_.src.image, position, v);
    v += problem_.unit.lanes();
  }
}

// A patch that reaches beyond the image is copied, block after block, and surrounded with zeros.
void WinogradDriver::TransformInput(const float* src, const TilePosition& position,
                                    float* v) const {
  const Geometry& geometry = problem_.geometry;
  const int64_t side = problem_.plan.side(), lanes = problem_.unit.lanes();
  const int64_t row_stride = problem_.src.spatial[1];
  const int64_t first_row = position.row - geometry.pad[1];
  const int64_t first_column = position.column - geometry.pad[2];
  const TapRange rows = Inside(first_row, side, geometry.in[1]);
  const TapRange columns = Inside(first_column, side, geometry.in[2]);
  const float* from =
      src + (first_row + rows.begin) * row_stride + (first_column + columns.begin) * lanes;
  if (rows.end - rows.begin == side && columns.end - columns.begin == side) {
    const WinogradInputArgs args = {from, v, row_stride * kFloatBytes,
                                    problem_.src.block * kFloatBytes, problem_.plan.input_blocks};
    return input_(&args);
  }
  alignas(64) float patch[kMaxSide * kMaxSide * kMaxLanes] = {};
  for (int64_t block = 0; block < problem_.plan.input_blocks; ++block) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      std::memcpy(patch + (row * side + columns.begin) * lanes,
                  from + (row - rows.begin) * row_stride,
                  (columns.end - columns.begin) * lanes * kFloatBytes);
    }
    const WinogradInputArgs args = {patch, v, side * lanes * kFloatBytes, 0, 1};
    input_(&args);
    from += problem_.src.block;
    v += problem_.plan.group_tiles * lanes;
  }
}

void WinogradDriver::Multiply(const Operands& operands, const Block& block, int64_t panel,
                              int64_t point, float* m) const {
  const WinogradPlan& plan = problem_.plan;
  const Geometry& geometry = problem_.geometry;
  const WinogradGemmArgs args = {
      block.v + point * plan.VPoint(),
      operands.weights + plan.weights.MatrixOffset(geometry.oc, geometry.ic, panel, point), m,
      block.groups};
  (panel == plan.panels - 1 ? multiply_last_ : multiply_)(&args);
}

void WinogradDriver::TransformOutputs(const Operands& operands, const Block& block, int64_t panel,
                                      int64_t group, const float* m) const {
  const WinogradPlan& plan = problem_.plan;
  const Geometry& geometry = problem_.geometry;
  const int64_t lanes = problem_.unit.lanes(), pixels = problem_.PixelsOfDst();
  const int64_t blocks = plan.weights.BlocksOfPanel(geometry.oc, panel);
  const int64_t first_block = panel * plan.weights.panel_blocks;
  const bool has_tail = geometry.oc % lanes != 0 && panel == plan.panels - 1;
  const int64_t first = group * plan.group_tiles;
  const int64_t end = std::min(first + plan.group_tiles, block.count);
  m += group * blocks * plan.group_tiles * lanes;
  TilePosition position = PositionOf(block.first + first);
  for (int64_t tile = first; tile < end; ++tile, m += lanes, Advance(&position)) {
    const bool cut_rows = position.row + plan.tile() > geometry.out[1];
    const bool cut_columns = position.column + plan.tile() > geometry.out[2];
    WinogradOutputArgs args;
    args.m = m;
    args.dst = operands.dst + position.image * problem_.dst.image +
               first_block * problem_.dst.block + position.row / pixels * problem_.dst.spatial[1] +
               position.column / pixels * problem_.dst.spatial[2];
    args.bias = operands.bias == nullptr ? nullptr : operands.bias + first_block * lanes;
    args.slopes = slopes_.empty() ? nullptr : slopes_.data() + first_block * lanes;
    args.blocks = blocks - has_tail;
    if (args.blocks > 0) output_.by_cut[cut_rows][cut_columns](&args);
    if (!has_tail) continue;
    args.m += args.blocks * plan.group_tiles * lanes;
    args.dst += args.blocks * problem_.dst.block;
    if (args.bias != nullptr) args.bias += args.blocks * lanes;
    if (args.slopes != nullptr) args.slopes += args.blocks * lanes;
    args.blocks = 1;
    output_tail_.by_cut[cut_rows][cut_columns](&args);
  }
}

}  // namespace tilewire::convolution
