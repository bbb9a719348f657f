// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/plane_product.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"

namespace tilewire {
namespace {

constexpr int64_t kChunkBytes = 4 << 20;  // of planes of weights: the share of a core in its caches
constexpr int64_t kFewestPieces = 8;      // of a chunk: work for several threads
constexpr int64_t kLineAlignment = 64;
constexpr uint64_t kAllLanes = 0xFFFF;

constexpr uint64_t LowLanes(int64_t count) { return (uint64_t{1} << count) - 1; }

}  // namespace

PlaneProduct::PlaneProduct(const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
                           std::vector<Item> items)
    : shape_(shape),
      layout_(shape.WeightsLayout(static_cast<int64_t>(weights.size()))),
      weights_(std::move(weights)),
      items_(std::move(items)) {
  first_items_.assign(weights_.size() + 1, 0);
  for (const Item& item : items_) ++first_items_[item.weights + 1];
  for (size_t w = 1; w < first_items_.size(); ++w) first_items_[w] += first_items_[w - 1];
  for (size_t w = 0; shape_.weights_are_split && w < weights_.size(); ++w)
    weights_[w].offset = layout_.GroupOffset(static_cast<int64_t>(w) * Groups());
  const int64_t pieces = static_cast<int64_t>(items_.size()) * DivUp(shape_.rows, kPlaneRows);
  slots_ = std::min<int64_t>(cpu::GrantedCores(), std::max(pieces, kFewestPieces) * Groups());
}

int64_t PlaneProduct::ChunkGroups() const {
  return std::max<int64_t>(1, kChunkBytes / GroupBytes());
}

// Whole weights, or a part of the outputs of one.
int64_t PlaneProduct::Chunks() const {
  const int64_t weights = static_cast<int64_t>(weights_.size());
  if (Groups() > ChunkGroups()) return weights * DivUp(Groups(), ChunkGroups());
  return DivUp(weights, ChunkGroups() / Groups());
}

PlaneProduct::Chunk PlaneProduct::ChunkAt(int64_t index) const {
  const int64_t weights = static_cast<int64_t>(weights_.size());
  if (Groups() > ChunkGroups()) {
    const int64_t parts = DivUp(Groups(), ChunkGroups());
    return {{index / parts, 1}, SplitEvenly(Groups(), parts)[index % parts]};
  }
  const int64_t at_once = ChunkGroups() / Groups();
  return {{index * at_once, std::min(at_once, weights - index * at_once)}, {0, Groups()}};
}

// Of a chunk: planes of its groups, and a byte for each that says whether some number is beyond.
int64_t PlaneProduct::SharedBytes() const {
  if (shape_.weights_are_split) return 0;
  const int64_t all = static_cast<int64_t>(weights_.size()) * Groups();
  const int64_t groups = std::min(all, ChunkGroups());
  return groups * GroupBytes() + RoundUp(groups, kLineAlignment);
}

int64_t PlaneProduct::SlotBytes() const { return GroupBytes() + apart_->bytes(); }

int64_t PlaneProduct::scratchpad_bytes() const { return SharedBytes() + slots_ * SlotBytes(); }

absl::StatusOr<std::unique_ptr<const PlaneProduct>> PlaneProduct::Create(
    absl::string_view name, const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
    std::vector<Item> items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.weights < b.weights; });
  std::unique_ptr<PlaneProduct> product(
      new PlaneProduct(shape, std::move(weights), std::move(items)));
  ABSL_RETURN_IF_ERROR(product->Compile(name));
  return product;
}

absl::Status PlaneProduct::Compile(absl::string_view name) {
  ABSL_ASSIGN_OR_RETURN(split_, jit::Compile<PlaneSplit>(name, shape_.planes));
  ABSL_ASSIGN_OR_RETURN(apart_, RowsApart::Create(name, shape_));
  code_bytes_ = static_cast<int64_t>(split_->code_bytes()) + apart_->code_bytes();
  for (const bool last_group : {false, true}) {
    if (!last_group && Groups() == 1) continue;
    for (const bool last_rows : {false, true}) {
      if (!last_rows && shape_.rows <= kPlaneRows) continue;
      ABSL_ASSIGN_OR_RETURN(
          tiles_[last_group][last_rows],
          jit::Compile<PlaneTile>(name, shape_.planes, EpilogueOf(last_group, last_rows)));
      code_bytes_ += static_cast<int64_t>(tiles_[last_group][last_rows]->code_bytes());
    }
  }
  return absl::OkStatus();
}

EpilogueConfig PlaneProduct::EpilogueOf(bool last_group, bool last_rows) const {
  const int64_t rows = last_rows ? (shape_.rows - 1) % kPlaneRows + 1 : kPlaneRows;
  const int64_t blocks = last_group ? (layout_.Blocks() - 1) % kPlaneBlocks + 1 : kPlaneBlocks;
  return {.unit = VectorUnit::Of(cpu::Isa::kAmx),
          .blocks = static_cast<int>(blocks),
          .pixels = static_cast<int>(rows),
          .dst_pixel_bytes = shape_.dst_row,
          .dst_block_bytes = shape_.dst_block,
          .bias = shape_.bias,
          .tail_lanes = last_group ? static_cast<int>(shape_.outputs % kPlaneLanes) : 0,
          .post_ops = shape_.post_ops,
          .packed_channels = shape_.packed_dst};
}

void PlaneProduct::Run(const PlaneOperands& operands, std::byte* scratchpad,
                       const threading::Team& team) const {
  const int64_t chunks = Chunks();
  for (int64_t i = 0; i < chunks && !threading::Stopped(); ++i)
    RunChunk(operands, ChunkAt(i), scratchpad, team);
}

// The groups of a chunk follow each other in split weights, too.
PlaneProduct::ChunkPlanes PlaneProduct::PlanesOf(const PlaneOperands& operands, const Chunk& chunk,
                                                 std::byte* scratchpad,
                                                 const threading::Team& team) const {
  if (shape_.weights_are_split) {
    const int64_t first = chunk.weights.begin * Groups() + chunk.groups.begin;
    const std::byte* beyond = operands.weights + layout_.BeyondOffset() + first;
    return {operands.weights + layout_.GroupOffset(first),
            reinterpret_cast<const uint8_t*>(beyond)};
  }
  std::byte* const slots = scratchpad + SharedBytes();
  const int64_t count = chunk.weights.size * chunk.groups.size;
  auto* const beyond = reinterpret_cast<uint8_t*>(scratchpad + count * GroupBytes());
  threading::ParallelForInSlots(team, count, slots_, [&](int64_t i, int64_t slot) {
    const int64_t weights = chunk.weights.begin + i / chunk.groups.size;
    const int64_t group = chunk.groups.begin + i % chunk.groups.size;
    beyond[i] = SplitGroup(operands, weights, group, slots + slot * SlotBytes() + GroupBytes(),
                           scratchpad + i * GroupBytes());
  });
  return {scratchpad, beyond};
}

void PlaneProduct::RunChunk(const PlaneOperands& operands, const Chunk& chunk,
                            std::byte* scratchpad, const threading::Team& team) const {
  const ChunkPlanes planes = PlanesOf(operands, chunk, scratchpad, team);
  std::byte* const slots = scratchpad + SharedBytes();
  const int64_t first = first_items_[chunk.weights.begin];
  const int64_t items = first_items_[chunk.weights.begin + chunk.weights.size] - first;
  const int64_t panels = DivUp(shape_.rows, int64_t{kPlaneRows});
  const int64_t parts = std::clamp<int64_t>(
      DivUp(kFewestPieces, std::max<int64_t>(1, items * panels)), 1, chunk.groups.size);
  const std::vector<Range> groups = SplitEvenly(chunk.groups.size, parts);
  threading::ParallelForInSlots(team, items * panels * parts, slots_, [&](int64_t i, int64_t slot) {
    const Item& item = items_[first + i / parts / panels];
    const int64_t row = i / parts % panels * kPlaneRows;
    const Piece piece = {operands, item, row,
                         static_cast<int>(std::min<int64_t>(kPlaneRows, shape_.rows - row)),
                         slots + slot * SlotBytes()};
    const Range& part = groups[i % parts];
    const int64_t before = (item.weights - chunk.weights.begin) * chunk.groups.size + part.begin;
    MultiplyPiece(piece, {chunk.groups.begin + part.begin, part.size},
                  {planes.lines + before * GroupBytes(), planes.beyond + before});
  });
}

// Returns whether some number is beyond planes.
bool PlaneProduct::SplitGroup(const PlaneOperands& operands, int64_t weights, int64_t group,
                              std::byte* copy, std::byte* to) const {
  bool beyond = false;
  const int64_t end = std::min((group + 1) * kPlaneBlocks, layout_.Blocks());
  for (int64_t block = group * kPlaneBlocks; block < end; ++block) {
    const WeightsBlock from =
        apart_->BlockOf(operands.weights + weights_[weights].offset, block, copy);
    beyond |= SplitWeights(*split_, layout_, from, to + block % kPlaneBlocks * kPlaneBlockBytes);
  }
  return beyond;
}

// Returns the rows with a number that is beyond planes, a bit for each.
uint32_t PlaneProduct::SplitRows(const Piece& piece) const {
  uint32_t rows = 0;
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    std::byte* const to = piece.slot + tap * layout_.TapSteps() * layout_.StepBytes();
    piece.operands.src->ForEachRun(piece.item.product, piece.row, piece.rows, tap,
                                   [&](const PlaneRows::Run& run) {
                                     if (SplitRun(run, to + run.first * kPlaneLineBytes))
                                       rows |= BeyondRows(run);
                                   });
  }
  return rows;
}

bool PlaneProduct::SplitRun(const PlaneRows::Run& run, std::byte* to) const {
  PlaneSplitArgs args = {.src = run.src,
                         .row_bytes = run.row_bytes,
                         .pair_bytes = shape_.src_block,
                         .step_bytes = 2 * shape_.src_block,
                         .rows = run.rows,
                         .steps = layout_.TapSteps(),
                         .dst = to,
                         .beyond = 0};
  const auto function = split_->entry<PlaneSplitFunction>();
  if (run.src == nullptr) {
    function(&args);
    return false;
  }
  args.first_mask = args.second_mask = kAllLanes;
  args.steps = shape_.channels / kPlaneStep;
  if (args.steps > 0) function(&args);
  const int64_t rest = shape_.channels % kPlaneStep;
  if (rest == 0) return args.beyond != 0;
  args.src += args.steps * args.step_bytes;
  args.dst += args.steps * layout_.StepBytes();
  args.steps = 1;
  args.first_mask = LowLanes(std::min<int64_t>(rest, kPlaneLanes));
  args.second_mask = LowLanes(std::max<int64_t>(rest - kPlaneLanes, 0));
  function(&args);
  return args.beyond != 0;
}

uint32_t PlaneProduct::BeyondRows(const PlaneRows::Run& run) const {
  uint32_t rows = 0;
  for (int row = 0; row < run.rows; ++row) {
    bool beyond = false;
    for (int64_t c = 0; c < shape_.channels && !beyond; ++c) {
      const auto* block = reinterpret_cast<const float*>(run.src + row * run.row_bytes +
                                                         c / kPlaneLanes * shape_.src_block);
      beyond = IsBeyondPlanes(block[c % kPlaneLanes], shape_.planes);
    }
    if (beyond) rows |= 1u << (run.first + row);
  }
  return rows;
}

void PlaneProduct::MultiplyPiece(const Piece& piece, const Range& groups,
                                 const ChunkPlanes& planes) const {
  const uint32_t all = static_cast<uint32_t>(LowLanes(piece.rows));
  const uint32_t beyond_rows = SplitRows(piece);
  std::byte* const apart = piece.slot + GroupBytes();
  PlaneTileArgs args = {.a = piece.slot, .steps = shape_.taps * layout_.TapSteps()};
  ConfigureWholeTiles();
  for (int64_t i = 0; i < groups.size && !threading::Stopped(); ++i) {
    const int64_t group = groups.begin + i, block = group * kPlaneBlocks;
    const bool last_rows = piece.row + kPlaneRows >= shape_.rows;
    const RowsApart::Rows rows = {.operands = piece.operands,
                                  .product = piece.item.product,
                                  .first = piece.row,
                                  .count = piece.rows,
                                  .selected = planes.beyond[i] != 0 ? all : beyond_rows,
                                  .weights = weights_[piece.item.weights],
                                  .dst = piece.operands.dst + piece.item.dst};
    if (rows.selected != 0) apart_->Multiply(rows, group, apart);
    args.b = planes.lines + i * GroupBytes();
    args.bias = apart_->BiasOf(rows, block);
    args.dst = apart_->DstOf(rows, 0, block);
    tiles_[group + 1 == Groups()][last_rows]->entry<PlaneTileFunction>()(&args);
    if (rows.selected != 0) apart_->Store(rows, group, apart);
  }
  ReleaseMatrixTiles();
}

}  // namespace tilewire
