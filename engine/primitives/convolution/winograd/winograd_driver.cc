// SPDX-License-Identifier: Apache-2.0
//
// How the pieces of a Winograd convolution by products of f32 come together. Three generated
// functions do the work:
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
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/jit/generator.h"
#include "engine/primitives/convolution/winograd/winograd_gemm_generator.h"
#include "engine/threading/slots.h"

namespace tilewire::convolution {
namespace {

class FloatDriver final : public WinogradDriver {
 public:
  FloatDriver(const WinogradProblem& problem, WinogradTiles tiles)
      : WinogradDriver(problem, std::move(tiles), problem.plan.panels) {}
  absl::Status Generate(absl::string_view name);

  void Run(const WinogradOperands& operands, std::byte* scratchpad,
           const threading::Team& team) const override;
  int64_t scratchpad_bytes() const override {
    return ((plan().shared ? 1 : slots_) * plan().VElements() + slots_ * plan().MElements()) *
           kFloatBytes;
  }
  int64_t code_bytes() const override;

 private:
  // Tiles with their transformed inputs in v.
  struct Work {
    Range tiles;
    float* v;
  };

  WinogradGemmFunction Keep(std::unique_ptr<const jit::Generator> generator);
  void RunAlone(const WinogradOperands& operands, const Work& work) const;
  void RunShared(const WinogradOperands& operands, const Work& work,
                 const threading::Team& team) const;
  void RunPanel(const WinogradOperands& operands, const Work& work, int64_t panel, float* m) const;
  void TransformInputs(const WinogradOperands& operands, const Work& work, int64_t group) const;
  void Multiply(const WinogradOperands& operands, const Work& work, int64_t panel, int64_t point,
                float* m) const;

  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  WinogradGemmFunction multiply_ = nullptr, multiply_last_ = nullptr;  // the last panel
};

WinogradGemmFunction FloatDriver::Keep(std::unique_ptr<const jit::Generator> generator) {
  generators_.push_back(std::move(generator));
  return generators_.back()->entry<WinogradGemmFunction>();
}

// A chain of 512 additions rounds twice as much as four of 128.
absl::Status FloatDriver::Generate(absl::string_view name) {
  constexpr int64_t kChainChannels = 128;
  WinogradGemmConfig config{
      .unit = problem_.unit,
      .tiles = static_cast<int>(plan().group_tiles),
      .blocks = plan().weights.panel_blocks,
      .input_blocks = plan().input_blocks,
      .chain_blocks = problem_.short_chains ? kChainChannels / problem_.unit.lanes() : 0,
      .groups = plan().block_groups};
  ABSL_ASSIGN_OR_RETURN(auto multiply, GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
  multiply_ = multiply_last_ = Keep(std::move(multiply));
  const int64_t last_blocks = BlocksOfPanel(plan().panels - 1).size;
  const int tail_lanes = static_cast<int>(problem_.geometry.oc % problem_.unit.lanes());
  if (last_blocks == config.blocks && tail_lanes == 0) return absl::OkStatus();
  config.blocks = static_cast<int>(last_blocks);
  config.tail_lanes = tail_lanes;
  ABSL_ASSIGN_OR_RETURN(auto multiply_last,
                        GenerateWinogradGemm(absl::StrCat(name, ".gemm"), config));
  multiply_last_ = Keep(std::move(multiply_last));
  return absl::OkStatus();
}

int64_t FloatDriver::code_bytes() const {
  int64_t bytes = tiles_.code_bytes();
  for (const auto& generator : generators_) bytes += generator->code_bytes();
  return bytes;
}

void FloatDriver::Run(const WinogradOperands& operands, std::byte* scratchpad,
                      const threading::Team& team) const {
  auto* const v = reinterpret_cast<float*>(scratchpad);
  if (plan().shared) {
    for (int64_t i = 0; i < Blocks(); ++i) RunShared(operands, {Block(i), v}, team);
    return;
  }
  threading::ParallelForInSlots(team, Blocks(), slots_, [&](int64_t i, int64_t slot) {
    RunAlone(operands, {Block(i), v + slot * (plan().VElements() + plan().MElements())});
  });
}

void FloatDriver::RunAlone(const WinogradOperands& operands, const Work& work) const {
  const int64_t groups = Groups(work.tiles);
  for (int64_t group = 0; group < groups; ++group) TransformInputs(operands, work, group);
  float* m = work.v + plan().VElements();
  for (int64_t panel = 0; panel < plan().panels; ++panel) RunPanel(operands, work, panel, m);
}

void FloatDriver::RunShared(const WinogradOperands& operands, const Work& work,
                            const threading::Team& team) const {
  float* m = work.v + plan().VElements();
  team.ParallelFor(Groups(work.tiles), [&](int64_t i) { TransformInputs(operands, work, i); });
  threading::ParallelForInSlots(team, plan().panels, slots_, [&](int64_t panel, int64_t slot) {
    RunPanel(operands, work, panel, m + slot * plan().MElements());
  });
}

void FloatDriver::RunPanel(const WinogradOperands& operands, const Work& work, int64_t panel,
                           float* m) const {
  for (int64_t point = 0; point < plan().points(); ++point)
    Multiply(operands, work, panel, point, m + point * plan().MPoint());
  const Range blocks = BlocksOfPanel(panel);
  const int64_t groups = Groups(work.tiles);
  for (int64_t group = 0; group < groups; ++group) {
    tiles_.TransformOutputs(operands, Group(work.tiles, group), blocks, m);
    m += blocks.size * plan().group_tiles * problem_.unit.lanes();
  }
}

void FloatDriver::TransformInputs(const WinogradOperands& operands, const Work& work,
                                  int64_t group) const {
  tiles_.TransformInputs(operands, Group(work.tiles, group), {0, plan().input_blocks},
                         work.v + group * plan().VGroup());
}

void FloatDriver::Multiply(const WinogradOperands& operands, const Work& work, int64_t panel,
                           int64_t point, float* m) const {
  const Geometry& geometry = problem_.geometry;
  const auto* const weights = static_cast<const float*>(operands.weights);
  const WinogradGemmArgs args = {
      work.v + point * plan().VPoint(),
      weights + plan().weights.MatrixOffset(geometry.oc, geometry.ic, panel, point), m,
      Groups(work.tiles)};
  (panel == plan().panels - 1 ? multiply_last_ : multiply_)(&args);
}

}  // namespace

WinogradDriver::WinogradDriver(const WinogradProblem& problem, WinogradTiles tiles, int64_t parts)
    : problem_(problem),
      tiles_(std::move(tiles)),
      slots_(std::min<int64_t>(problem.plan.shared ? parts : Blocks(), cpu::GrantedCores())) {}

Range WinogradDriver::Group(const Range& block, int64_t index) const {
  const int64_t first = index * plan().group_tiles;
  return {block.begin + first, std::min(plan().group_tiles, block.size - first)};
}

Range WinogradDriver::BlocksOfPanel(int64_t panel) const {
  const WinogradLayout& weights = plan().weights;
  return {panel * weights.panel_blocks, weights.BlocksOfPanel(problem_.geometry.oc, panel)};
}

WinogradDriver::Created WinogradDriver::Create(absl::string_view name,
                                               const WinogradProblem& problem) {
  const WinogradPlan& plan = problem.plan;
  const int64_t block = plan.group_tiles * problem.unit.lanes();
  ABSL_ASSIGN_OR_RETURN(
      WinogradTiles tiles,
      WinogradTiles::Create(name, problem, {plan.VPoint(), block}, {plan.MPoint(), block}));
  auto driver = std::make_unique<FloatDriver>(problem, std::move(tiles));
  ABSL_RETURN_IF_ERROR(driver->Generate(name));
  return driver;
}

}  // namespace tilewire::convolution
