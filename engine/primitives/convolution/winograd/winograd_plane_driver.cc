// SPDX-License-Identifier: Apache-2.0
//
// A product by planes takes so little time that what it reads has to come from the second cache. So
// a block of tiles goes through three steps, each of which is cut into pieces:
//
//   inputs    for each group of tiles and each 32 channels: transform them to a copy of f32, which
//             stays in cache, and split the copy into planes, V
//   products  for each point and some panels of outputs: V of the point stays in the second cache,
//             weights are read once per block, and the sums go to M
//   outputs   for each group and panel: transform M to pixels of dst
//
// Where the weights, V and M fit the second cache together, a thread takes whole blocks, one step
// after the other; else threads share the pieces of a block. Rows of a product that are not tiles
// hold what was there before, and their sums are not read.
#include "engine/primitives/convolution/winograd/winograd_plane_driver.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/kernels/planes/plane_tile.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/kernels/tiles/matrix_tiles.h"
#include "engine/threading/slots.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kStepBlocks = kPlaneStep / kPlaneLanes;  // blocks of channels of a step
constexpr int64_t kCopyBlock = kPlaneRows * kPlaneLanes;   // elements
constexpr int64_t kPanelsAtOnce = 4;                       // make up for configuring tiles
constexpr uint64_t kAllChannels = 0xFFFF;

// Between points of a copy, in elements.
constexpr int64_t CopyPoint() { return WinogradPlan::PointStride(kStepBlocks * kCopyBlock); }

int64_t MPoint(const WinogradPlan& plan) {
  return WinogradPlan::PointStride(plan.BlockTiles() * plan.output_blocks * kPlaneLanes);
}

}  // namespace

absl::StatusOr<WinogradPlaneDriver> WinogradPlaneDriver::Create(absl::string_view name,
                                                                const WinogradProblem& problem) {
  ABSL_ASSIGN_OR_RETURN(
      WinogradTiles tiles,
      WinogradTiles::Create(name, problem, {CopyPoint(), kCopyBlock},
                            {MPoint(problem.plan), problem.plan.group_tiles * kPlaneLanes}));
  WinogradPlaneDriver driver(problem, std::move(tiles));
  ABSL_RETURN_IF_ERROR(driver.Compile(name));
  return driver;
}

WinogradPlaneDriver::WinogradPlaneDriver(const WinogradProblem& problem, WinogradTiles tiles)
    : problem_(problem),
      layout_(problem.plan.weights.Planes(problem.geometry.oc, problem.geometry.ic)),
      tiles_(std::move(tiles)) {
  const WinogradPlan& plan = problem.plan;
  const int64_t pieces =
      plan.shared ? plan.block_groups * layout_.TapSteps() : plan.Blocks(problem.geometry.batch);
  slots_ = std::min<int64_t>(pieces, cpu::GrantedCores());
}

absl::Status WinogradPlaneDriver::Compile(absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(split_, jit::Compile<PlaneSplit>(name, layout_.planes));
  std::vector<int64_t> steps;
  for (int64_t i = 0; i < layout_.TapSteps(); ++i) steps.push_back(i * layout_.StepBytes());
  EpilogueConfig epilogue{.unit = problem_.unit,
                          .dst_pixel_bytes = kPlaneLineBytes,
                          .dst_block_bytes = problem_.plan.group_tiles * kPlaneLineBytes};
  for (const int blocks : {1, kPlaneBlocks}) {
    const bool is_needed =
        blocks == 1 ? layout_.Blocks() % kPlaneBlocks == 1 : layout_.Blocks() > 1;
    if (!is_needed) continue;
    for (const int rows : {kPlaneLanes, kPlaneRows}) {
      if (rows > problem_.plan.group_tiles) continue;
      epilogue.blocks = blocks;
      epilogue.pixels = rows;
      ABSL_ASSIGN_OR_RETURN(
          products_[blocks == 1][rows == kPlaneLanes],
          GeneratePlaneTile(name,
                            {.planes = layout_.planes, .epilogue = epilogue, .steps = steps}));
    }
  }
  return absl::OkStatus();
}

int64_t WinogradPlaneDriver::code_bytes() const {
  int64_t bytes = tiles_.code_bytes() + static_cast<int64_t>(split_->code_bytes());
  for (const auto& row : products_) {
    for (const auto& product : row) {
      if (product != nullptr) bytes += static_cast<int64_t>(product->code_bytes());
    }
  }
  return bytes;
}

int64_t WinogradPlaneDriver::BlockBytes() const {
  return problem_.plan.points() * (VPoint() + MPoint(problem_.plan) * kFloatBytes);
}

int64_t WinogradPlaneDriver::scratchpad_bytes() const {
  const int64_t copy_bytes = problem_.plan.points() * CopyPoint() * kFloatBytes;
  return (problem_.plan.shared ? 1 : slots_) * BlockBytes() + slots_ * copy_bytes;
}

void WinogradPlaneDriver::Run(const WinogradOperands& operands, std::byte* scratchpad,
                              const threading::Team& team) const {
  const WinogradPlan& plan = problem_.plan;
  const int64_t blocks = plan.Blocks(problem_.geometry.batch);
  const int64_t copy_bytes = plan.points() * CopyPoint() * kFloatBytes;
  if (plan.shared) {
    std::byte* const copies = scratchpad + BlockBytes();
    for (int64_t i = 0; i < blocks && !threading::Stopped(); ++i)
      RunBlock(operands, BlockAt(i, scratchpad, copies), team);
    return;
  }
  threading::ParallelForInSlots(team, blocks, slots_, [&](int64_t i, int64_t slot) {
    std::byte* const begin = scratchpad + slot * (BlockBytes() + copy_bytes);
    RunBlock(operands, BlockAt(i, begin, begin + BlockBytes()), threading::Team::Serial());
  });
}

WinogradPlaneDriver::Block WinogradPlaneDriver::BlockAt(int64_t index, std::byte* scratchpad,
                                                        std::byte* copies) const {
  const WinogradPlan& plan = problem_.plan;
  return {.tiles = plan.TilesOfBlock(problem_.geometry.batch, index),
          .v = scratchpad,
          .m = reinterpret_cast<float*>(scratchpad + plan.points() * VPoint()),
          .copies = copies};
}

int64_t WinogradPlaneDriver::Groups(const Block& block) const {
  return DivUp(block.tiles.size, problem_.plan.group_tiles);
}

Range WinogradPlaneDriver::TilesOf(const Block& block, int64_t group) const {
  const int64_t first = group * problem_.plan.group_tiles;
  return {block.tiles.begin + first, std::min(problem_.plan.group_tiles, block.tiles.size - first)};
}

void WinogradPlaneDriver::RunBlock(const WinogradOperands& operands, const Block& block,
                                   const threading::Team& team) const {
  const WinogradPlan& plan = problem_.plan;
  const int64_t groups = Groups(block), steps = layout_.TapSteps();
  const int64_t copy_bytes = plan.points() * CopyPoint() * kFloatBytes;
  threading::ParallelForInSlots(team, groups * steps, slots_, [&](int64_t i, int64_t slot) {
    auto* const copy = reinterpret_cast<float*>(block.copies + slot * copy_bytes);
    MakeInputs(operands, block, i / steps, i % steps, copy);
  });
  const std::vector<Range> parts = SplitEvenly(plan.panels, DivUp(plan.panels, kPanelsAtOnce));
  const auto count = static_cast<int64_t>(parts.size());
  team.ParallelFor(plan.points() * count,
                   [&](int64_t i) { Multiply(operands, block, i / count, parts[i % count]); });
  team.ParallelFor(groups * plan.panels, [&](int64_t i) {
    const int64_t group = i / plan.panels, panel = i % plan.panels;
    const Range blocks = {panel * kPlaneBlocks, plan.weights.BlocksOfPanel(layout_.outputs, panel)};
    const int64_t first = group * plan.output_blocks + blocks.begin;
    tiles_.TransformOutputs(operands, TilesOf(block, group), blocks,
                            block.m + first * plan.group_tiles * kPlaneLanes);
  });
}

void WinogradPlaneDriver::MakeInputs(const WinogradOperands& operands, const Block& block,
                                     int64_t group, int64_t step, float* copy) const {
  const int64_t first = step * kStepBlocks;
  const Range blocks = {first, std::min(kStepBlocks, problem_.plan.input_blocks - first)};
  const Range tiles = TilesOf(block, group);
  tiles_.TransformInputs(operands, tiles, blocks, copy);
  PlaneSplitArgs args = {.row_bytes = kPlaneLineBytes,
                         .pair_bytes = kCopyBlock * kFloatBytes,
                         .step_bytes = 0,
                         .rows = tiles.size,
                         .steps = 1,
                         .first_mask = kAllChannels,
                         .second_mask = blocks.size == kStepBlocks ? kAllChannels : 0,
                         .beyond = 0};
  std::byte* const to = block.v + group * layout_.GroupBytes() + step * layout_.StepBytes();
  for (int64_t point = 0; point < problem_.plan.points(); ++point) {
    args.src = reinterpret_cast<const std::byte*>(copy + point * CopyPoint());
    args.dst = to + point * VPoint();
    split_->entry<PlaneSplitFunction>()(&args);
  }
}

// Each panel's weights serve all groups before those of the next are read.
void WinogradPlaneDriver::Multiply(const WinogradOperands& operands, const Block& block,
                                   int64_t point, const Range& panels) const {
  const WinogradPlan& plan = problem_.plan;
  const auto* const weights = static_cast<const std::byte*>(operands.weights);
  const int64_t groups = Groups(block), block_elements = plan.group_tiles * kPlaneLanes;
  float* const m = block.m + point * MPoint(plan);
  MatrixTiles matrix_tiles;
  IntegerTileArgs args = {};
  args.tiles = &matrix_tiles;
  for (int64_t panel = panels.begin; panel < panels.begin + panels.size; ++panel) {
    args.weights = weights + layout_.GroupOffset(point * layout_.Groups() + panel);
    const bool has_one = plan.weights.BlocksOfPanel(layout_.outputs, panel) == 1;
    for (int64_t group = 0; group < groups; ++group) {
      const bool is_half = TilesOf(block, group).size <= kPlaneLanes;
      const int64_t first = group * plan.output_blocks + panel * kPlaneBlocks;
      args.src = block.v + point * VPoint() + group * layout_.GroupBytes();
      args.dst = reinterpret_cast<std::byte*>(m + first * block_elements);
      products_[has_one][is_half]->entry<IntegerTileFunction>()(&args);
    }
  }
  FinishMatrixTiles(&matrix_tiles);
}

}  // namespace tilewire::convolution
