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
#include "engine/primitives/convolution/winograd/winograd_driver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/threading/slots.h"

namespace tilewire::convolution {

absl::StatusOr<WinogradDriver> WinogradDriver::Create(absl::string_view name,
                                                      const WinogradProblem& problem) {
  const WinogradPlan& plan = problem.plan;
  const int64_t block = plan.group_tiles * problem.unit.lanes();
  ABSL_ASSIGN_OR_RETURN(
      WinogradTiles tiles,
      WinogradTiles::Create(name, problem, {plan.VPoint(), block}, {plan.MPoint(), block}));
  WinogradDriver driver(problem, std::move(tiles));
  ABSL_RETURN_IF_ERROR(driver.Generate(name));
  return driver;
}

WinogradDriver::WinogradDriver(const WinogradProblem& problem, WinogradTiles tiles)
    : problem_(problem), tiles_(std::move(tiles)) {
  const WinogradPlan& plan = problem.plan;
  const int64_t pieces = plan.shared ? plan.panels : plan.Blocks(problem.geometry.batch);
  slots_ = std::min<int64_t>(pieces, cpu::GrantedCores());
}

WinogradGemmFunction WinogradDriver::Keep(std::unique_ptr<const jit::Generator> generator) {
  generators_.push_back(std::move(generator));
  return generators_.back()->entry<WinogradGemmFunction>();
}

absl::Status WinogradDriver::Generate(absl::string_view name) {
  const WinogradPlan& plan = problem_.plan;
  WinogradGemmConfig config{.unit = problem_.unit,
                            .tiles = static_cast<int>(plan.group_tiles),
                            .blocks = plan.weights.panel_blocks,
                            .input_blocks = plan.input_blocks,
                            .groups = plan.block_groups};
  ABSL_ASSIGN_OR_RETURN(auto multiply, GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
  multiply_ = multiply_last_ = Keep(std::move(multiply));
  const int64_t last_blocks = plan.weights.BlocksOfPanel(problem_.geometry.oc, plan.panels - 1);
  const int tail_lanes = static_cast<int>(problem_.geometry.oc % problem_.unit.lanes());
  if (last_blocks == config.blocks && tail_lanes == 0) return absl::OkStatus();
  config.blocks = static_cast<int>(last_blocks);
  config.tail_lanes = tail_lanes;
  ABSL_ASSIGN_OR_RETURN(auto multiply_last,
                        GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
  multiply_last_ = Keep(std::move(multiply_last));
  return absl::OkStatus();
}

int64_t WinogradDriver::scratchpad_bytes() const {
  const WinogradPlan& plan = problem_.plan;
  return ((plan.shared ? 1 : slots_) * plan.VElements() + slots_ * plan.MElements()) * kFloatBytes;
}

int64_t WinogradDriver::code_bytes() const {
  int64_t bytes = tiles_.code_bytes();
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

void WinogradDriver::Run(const WinogradOperands& operands, std::byte* scratchpad,
                         const threading::Team& team) const {
  const WinogradPlan& plan = problem_.plan;
  auto* const v = reinterpret_cast<float*>(scratchpad);
  const int64_t blocks = plan.Blocks(problem_.geometry.batch);
  if (plan.shared) {
    for (int64_t i = 0; i < blocks; ++i) RunShared(operands, BlockAt(i, v), team);
    return;
  }
  threading::ParallelForInSlots(team, blocks, slots_, [&](int64_t i, int64_t slot) {
    RunAlone(operands, BlockAt(i, v + slot * (plan.VElements() + plan.MElements())));
  });
}

WinogradDriver::Block WinogradDriver::BlockAt(int64_t index, float* v) const {
  const WinogradPlan& plan = problem_.plan;
  const Range tiles = plan.TilesOfBlock(problem_.geometry.batch, index);
  return {tiles.begin, tiles.size, DivUp(tiles.size, plan.group_tiles), v};
}

Range WinogradDriver::TilesOf(const Block& block, int64_t group) const {
  const int64_t first = group * problem_.plan.group_tiles;
  return {block.first + first, std::min(problem_.plan.group_tiles, block.count - first)};
}

void WinogradDriver::RunAlone(const WinogradOperands& operands, const Block& block) const {
  for (int64_t group = 0; group < block.groups; ++group) TransformInputs(operands, block, group);
  float* m = block.v + problem_.plan.VElements();
  for (int64_t panel = 0; panel < problem_.plan.panels; ++panel) {
    RunPanel(operands, block, panel, m);
  }
}

void WinogradDriver::RunShared(const WinogradOperands& operands, const Block& block,
                               const threading::Team& team) const {
  const WinogradPlan& plan = problem_.plan;
  float* m = block.v + plan.VElements();
  team.ParallelFor(block.groups, [&](int64_t i) { TransformInputs(operands, block, i); });
  threading::ParallelForInSlots(team, plan.panels, slots_, [&](int64_t panel, int64_t slot) {
    RunPanel(operands, block, panel, m + slot * plan.MElements());
  });
}

void WinogradDriver::RunPanel(const WinogradOperands& operands, const Block& block, int64_t panel,
                              float* m) const {
  const WinogradPlan& plan = problem_.plan;
  for (int64_t point = 0; point < plan.points(); ++point) {
    Multiply(operands, block, panel, point, m + point * plan.MPoint());
  }
  const Range blocks = {panel * plan.weights.panel_blocks,
                        plan.weights.BlocksOfPanel(problem_.geometry.oc, panel)};
  for (int64_t group = 0; group < block.groups; ++group) {
    tiles_.TransformOutputs(operands, TilesOf(block, group), blocks, m);
    m += blocks.size * plan.group_tiles * problem_.unit.lanes();
  }
}

void WinogradDriver::TransformInputs(const WinogradOperands& operands, const Block& block,
                                     int64_t group) const {
  const WinogradPlan& plan = problem_.plan;
  tiles_.TransformInputs(operands, TilesOf(block, group), {0, plan.input_blocks},
                         block.v + group * plan.VGroup());
}

void WinogradDriver::Multiply(const WinogradOperands& operands, const Block& block, int64_t panel,
                              int64_t point, float* m) const {
  const WinogradPlan& plan = problem_.plan;
  const Geometry& geometry = problem_.geometry;
  const auto* const weights = static_cast<const float*>(operands.weights);
  const WinogradGemmArgs args = {
      block.v + point * plan.VPoint(),
      weights + plan.weights.MatrixOffset(geometry.oc, geometry.ic, panel, point), m, block.groups};
  (panel == plan.panels - 1 ? multiply_last_ : multiply_)(&args);
}

}  // namespace tilewire::convolution
