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
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/kernels/planes/plane_split.h"
#include "engine/kernels/planes/plane_tile.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/kernels/tiles/matrix_tiles.h"
#include "engine/memory/plane_layout.h"
#include "engine/primitives/convolution/winograd/winograd_driver.h"
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

PlaneLayout LayoutOf(const WinogradProblem& problem) {
  return problem.plan.weights.Planes(problem.geometry.oc, problem.geometry.ic);
}

class PlaneDriver final : public WinogradDriver {
 public:
  PlaneDriver(const WinogradProblem& problem, WinogradTiles tiles)
      : WinogradDriver(problem, std::move(tiles),
                       problem.plan.block_groups * LayoutOf(problem).TapSteps()),
        layout_(LayoutOf(problem)) {}
  absl::Status Compile(absl::string_view name);

  void Run(const WinogradOperands& operands, std::byte* scratchpad,
           const threading::Team& team) const override;
  int64_t scratchpad_bytes() const override {
    return (plan().shared ? 1 : slots_) * BlockBytes() + slots_ * CopyBytes();
  }
  int64_t code_bytes() const override;

 private:
  // Tiles and their part of the scratchpad.
  struct Work {
    Range tiles;
    std::byte* v;       // [point][group][step][plane][32 lines]
    float* m;           // [point][group][output block][tile][lane]
    std::byte* copies;  // of each thread: a step of V before it is split
  };

  int64_t VPoint() const { return plan().block_groups * layout_.GroupBytes(); }
  int64_t CopyBytes() const { return plan().points() * CopyPoint() * kFloatBytes; }
  int64_t BlockBytes() const {  // of V and M
    return plan().points() * (VPoint() + MPoint(plan()) * kFloatBytes);
  }
  Work WorkAt(int64_t block, std::byte* scratchpad, std::byte* copies) const;

  void RunBlock(const WinogradOperands& operands, const Work& work,
                const threading::Team& team) const;
  void MakeInputs(const WinogradOperands& operands, const Work& work, int64_t group, int64_t step,
                  float* copy) const;
  void Multiply(const WinogradOperands& operands, const Work& work, int64_t point,
                const Range& panels) const;

  const PlaneLayout layout_;  // of the weights: a matrix is a point, a group of it a panel
  std::unique_ptr<const PlaneSplit> split_;
  // By whether a panel has one block, and whether a product has 16 rows.
  std::unique_ptr<const jit::Generator> products_[2][2];
};

absl::Status PlaneDriver::Compile(absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(split_, jit::Compile<PlaneSplit>(name, layout_.planes));
  std::vector<int64_t> steps;
  for (int64_t i = 0; i < layout_.TapSteps(); ++i) steps.push_back(i * layout_.StepBytes());
  EpilogueConfig epilogue{.unit = problem_.unit,
                          .dst_pixel_bytes = kPlaneLineBytes,
                          .dst_block_bytes = plan().group_tiles * kPlaneLineBytes};
  for (const int blocks : {1, kPlaneBlocks}) {
    const bool is_needed =
        blocks == 1 ? layout_.Blocks() % kPlaneBlocks == 1 : layout_.Blocks() > 1;
    if (!is_needed) continue;
    for (const int rows : {kPlaneLanes, kPlaneRows}) {
      if (rows > plan().group_tiles) continue;
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

int64_t PlaneDriver::code_bytes() const {
  int64_t bytes = tiles_.code_bytes() + static_cast<int64_t>(split_->code_bytes());
  for (const auto& row : products_) {
    for (const auto& product : row) {
      if (product != nullptr) bytes += static_cast<int64_t>(product->code_bytes());
    }
  }
  return bytes;
}

void PlaneDriver::Run(const WinogradOperands& operands, std::byte* scratchpad,
                      const threading::Team& team) const {
  if (plan().shared) {
    std::byte* const copies = scratchpad + BlockBytes();
    for (int64_t i = 0; i < Blocks() && !threading::Stopped(); ++i)
      RunBlock(operands, WorkAt(i, scratchpad, copies), team);
    return;
  }
  threading::ParallelForInSlots(team, Blocks(), slots_, [&](int64_t i, int64_t slot) {
    std::byte* const begin = scratchpad + slot * (BlockBytes() + CopyBytes());
    RunBlock(operands, WorkAt(i, begin, begin + BlockBytes()), threading::Team::Serial());
  });
}

PlaneDriver::Work PlaneDriver::WorkAt(int64_t block, std::byte* scratchpad,
                                      std::byte* copies) const {
  return {.tiles = Block(block),
          .v = scratchpad,
          .m = reinterpret_cast<float*>(scratchpad + plan().points() * VPoint()),
          .copies = copies};
}

void PlaneDriver::RunBlock(const WinogradOperands& operands, const Work& work,
                           const threading::Team& team) const {
  const int64_t groups = Groups(work.tiles), steps = layout_.TapSteps();
  threading::ParallelForInSlots(team, groups * steps, slots_, [&](int64_t i, int64_t slot) {
    auto* const copy = reinterpret_cast<float*>(work.copies + slot * CopyBytes());
    MakeInputs(operands, work, i / steps, i % steps, copy);
  });
  const std::vector<Range> parts = SplitEvenly(plan().panels, DivUp(plan().panels, kPanelsAtOnce));
  const auto count = static_cast<int64_t>(parts.size());
  team.ParallelFor(plan().points() * count,
                   [&](int64_t i) { Multiply(operands, work, i / count, parts[i % count]); });
  team.ParallelFor(groups * plan().panels, [&](int64_t i) {
    const int64_t group = i / plan().panels, panel = i % plan().panels;
    const Range blocks = BlocksOfPanel(panel);
    const int64_t first = group * plan().output_blocks + blocks.begin;
    tiles_.TransformOutputs(operands, Group(work.tiles, group), blocks,
                            work.m + first * plan().group_tiles * kPlaneLanes);
  });
}

void PlaneDriver::MakeInputs(const WinogradOperands& operands, const Work& work, int64_t group,
                             int64_t step, float* copy) const {
  const int64_t first = step * kStepBlocks;
  const Range blocks = {first, std::min(kStepBlocks, plan().input_blocks - first)};
  const Range tiles = Group(work.tiles, group);
  tiles_.TransformInputs(operands, tiles, blocks, copy);
  PlaneSplitArgs args = {.row_bytes = kPlaneLineBytes,
                         .pair_bytes = kCopyBlock * kFloatBytes,
                         .step_bytes = 0,
                         .rows = tiles.size,
                         .steps = 1,
                         .first_mask = kAllChannels,
                         .second_mask = blocks.size == kStepBlocks ? kAllChannels : 0,
                         .beyond = 0};
  std::byte* const to = work.v + group * layout_.GroupBytes() + step * layout_.StepBytes();
  for (int64_t point = 0; point < plan().points(); ++point) {
    args.src = reinterpret_cast<const std::byte*>(copy + point * CopyPoint());
    args.dst = to + point * VPoint();
    split_->entry<PlaneSplitFunction>()(&args);
  }
}

// Each panel's weights serve all groups before those of the next are read.
void PlaneDriver::Multiply(const WinogradOperands& operands, const Work& work, int64_t point,
                           const Range& panels) const {
  const auto* const weights = static_cast<const std::byte*>(operands.weights);
  const int64_t groups = Groups(work.tiles), block_elements = plan().group_tiles * kPlaneLanes;
  float* const m = work.m + point * MPoint(plan());
  MatrixTiles matrix_tiles;
  IntegerTileArgs args = {};
  args.tiles = &matrix_tiles;
  for (int64_t panel = panels.begin; panel < panels.begin + panels.size; ++panel) {
    args.weights = weights + layout_.GroupOffset(point * layout_.Groups() + panel);
    const bool has_one = BlocksOfPanel(panel).size == 1;
    for (int64_t group = 0; group < groups; ++group) {
      const bool is_half = Group(work.tiles, group).size <= kPlaneLanes;
      const int64_t first = group * plan().output_blocks + panel * kPlaneBlocks;
      args.src = work.v + point * VPoint() + group * layout_.GroupBytes();
      args.dst = reinterpret_cast<std::byte*>(m + first * block_elements);
      products_[has_one][is_half]->entry<IntegerTileFunction>()(&args);
    }
  }
  FinishMatrixTiles(&matrix_tiles);
}

}  // namespace

WinogradDriver::Created WinogradDriver::CreateByPlanes(absl::string_view name,
                                                       const WinogradProblem& problem) {
  ABSL_ASSIGN_OR_RETURN(
      WinogradTiles tiles,
      WinogradTiles::Create(name, problem, {CopyPoint(), kCopyBlock},
                            {MPoint(problem.plan), problem.plan.group_tiles * kPlaneLanes}));
  auto driver = std::make_unique<PlaneDriver>(problem, std::move(tiles));
  ABSL_RETURN_IF_ERROR(driver->Compile(name));
  return driver;
}

}  // namespace tilewire::convolution
