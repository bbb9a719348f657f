// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/moves/channel_gather.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/moves/lane_transpose.h"

namespace tilewire {

// Parts of ChannelGather::Plan, whose name has linkage.
namespace channel_gather {

// A block of the source tensors.
struct BlockName {
  int tensor;
  int64_t block;
  auto operator<=>(const BlockName&) const = default;
};

// Numbers for patterns, equal ones for equal patterns.
template <typename Pattern>
class Numbering {
 public:
  int Of(const Pattern& pattern) {
    const auto [it, is_new] = numbers_.try_emplace(pattern, numbers_.size());
    if (is_new) patterns_.push_back(pattern);
    return it->second;
  }
  const std::vector<Pattern>& patterns() const { return patterns_; }

 private:
  std::map<Pattern, int> numbers_;
  std::vector<Pattern> patterns_;
};

}  // namespace channel_gather

namespace {

using channel_gather::BlockName;
using channel_gather::Numbering;

constexpr int64_t kPiecePixels = 128;
constexpr int kMostSources = 16;  // lanes of the widest block

// Dimension 1 alone is blocked, and the blocks of all pixels follow each other.
absl::Status RequireDensePixels(const MemoryDesc& desc, int64_t lanes) {
  if (desc.inner_blocks().size() != 1 || desc.inner_blocks()[0] != InnerBlock{1, lanes}) {
    return Unimplemented(desc.ToString(), " has no blocks of ", lanes, " channels");
  }
  int64_t step = lanes;
  for (int d = desc.rank() - 1; d >= 2; --d) {
    if (desc.dim(d) != 1 && desc.stride(d) != step) {
      return Unimplemented(desc.ToString(), " has gaps between pixels");
    }
    step *= desc.dim(d);
  }
  return absl::OkStatus();
}

LaneGatherConfig ConfigOf(const MemoryDesc& desc, const jit::VectorUnit& unit) {
  return {unit, static_cast<int>(desc.BlockSize(1)), static_cast<int>(SizeOf(desc.data_type()))};
}

// One block of dst: which source blocks it needs, and the lanes it takes of them.
struct BlockOrigin {
  std::vector<BlockName> blocks;
  LanePattern pattern;
};

BlockOrigin OriginOf(absl::Span<const ChannelSource> channels, int lanes) {
  BlockOrigin origin;
  origin.pattern.resize(lanes);
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    const BlockName block = {channels[lane].tensor, channels[lane].channel / lanes};
    auto it = std::find(origin.blocks.begin(), origin.blocks.end(), block);
    if (it == origin.blocks.end()) it = origin.blocks.insert(it, block);
    origin.pattern[lane] = {static_cast<int>(it - origin.blocks.begin()),
                            static_cast<int>(channels[lane].channel % lanes)};
  }
  return origin;
}

// The pattern, with its sources numbered in the order of `blocks`.
LanePattern Renumbered(const BlockOrigin& origin, const std::vector<BlockName>& blocks) {
  LanePattern pattern = origin.pattern;
  for (LaneSource& lane : pattern) {
    if (lane.source < 0) continue;
    const auto it = std::find(blocks.begin(), blocks.end(), origin.blocks[lane.source]);
    lane.source = static_cast<int>(it - blocks.begin());
  }
  return pattern;
}

}  // namespace

absl::Status ChannelGather::Require(absl::Span<const MemoryDesc> srcs, const MemoryDesc& dst,
                                    const jit::VectorUnit& unit) {
  if (dst.rank() < 2 || dst.inner_blocks().size() != 1) {
    return Unimplemented(dst.ToString(), " has no blocks of channels");
  }
  const LaneGatherConfig config = ConfigOf(dst, unit);
  ABSL_RETURN_IF_ERROR(RequireLaneGather(config));
  ABSL_RETURN_IF_ERROR(RequireDensePixels(dst, config.lanes));
  for (const MemoryDesc& src : srcs) ABSL_RETURN_IF_ERROR(RequireDensePixels(src, config.lanes));
  return absl::OkStatus();
}

// The units by the number of their function.
struct ChannelGather::Plan {
  struct PlannedUnit {
    std::vector<BlockName> sources;
    std::vector<int64_t> dsts;  // blocks
    bool transposes;
    int function;
  };
  Numbering<LanePattern> gathers;
  Numbering<LaneTransposePattern> transposes;
  std::vector<PlannedUnit> units;

  // Blocks of dst that consist of the same blocks are transposed where possible; the others are
  // gathered.
  Plan(const LaneGatherConfig& config, absl::Span<const ChannelSource> channels) {
    std::vector<BlockOrigin> origins;
    std::map<std::vector<BlockName>, std::vector<int64_t>> by_sources;
    for (size_t first = 0; first < channels.size(); first += config.lanes) {
      origins.push_back(OriginOf(channels.subspan(first, config.lanes), config.lanes));
      std::vector<BlockName> blocks = origins.back().blocks;
      std::sort(blocks.begin(), blocks.end());
      by_sources[blocks].push_back(static_cast<int64_t>(origins.size()) - 1);
    }
    for (const auto& [sources, dsts] : by_sources) {
      LaneTransposePattern pattern;
      for (int64_t dst : dsts) pattern.push_back(Renumbered(origins[dst], sources));
      if (IsLaneTranspose(config, pattern)) {
        units.push_back({sources, dsts, true, transposes.Of(pattern)});
        continue;
      }
      for (int64_t dst : dsts) {
        units.push_back({origins[dst].blocks, {dst}, false, gathers.Of(origins[dst].pattern)});
      }
    }
  }
};

absl::StatusOr<ChannelGather> ChannelGather::Create(absl::string_view name,
                                                    const jit::VectorUnit& unit,
                                                    absl::Span<const MemoryDesc> srcs,
                                                    const MemoryDesc& dst,
                                                    absl::Span<const ChannelSource> channels) {
  ABSL_RETURN_IF_ERROR(Require(srcs, dst, unit));
  const LaneGatherConfig config = ConfigOf(dst, unit);
  const int64_t element = config.element_bytes, vector = config.lanes * element;
  ChannelGather gather;
  gather.batch_ = dst.dim(0);
  gather.run_bytes_ = vector;
  for (int d = 2; d < dst.rank(); ++d) gather.run_bytes_ *= dst.dim(d);
  gather.dst_offset_ = dst.offset0() * element;
  gather.dst_image_stride_ = dst.stride(0) * element;
  gather.dst_block_stride_ = dst.stride(1) * element;
  ABSL_RETURN_IF_ERROR(gather.MakeUnits(name, config, Plan(config, channels), srcs));
  gather.piece_bytes_ = kPiecePixels * vector;
  gather.pieces_ = DivUp(gather.run_bytes_, gather.piece_bytes_);
  gather.units_at_once_ =
      std::max<int64_t>(1, gather.piece_bytes_ / std::max<int64_t>(1, gather.run_bytes_));
  gather.unit_pieces_ = DivUp(static_cast<int64_t>(gather.units_.size()), gather.units_at_once_);
  return gather;
}

absl::Status ChannelGather::MakeUnits(absl::string_view name, const LaneGatherConfig& config,
                                      const Plan& plan, absl::Span<const MemoryDesc> srcs) {
  if (!plan.gathers.patterns().empty()) {
    ABSL_ASSIGN_OR_RETURN(gathers_, CompileLaneGather(name, config, plan.gathers.patterns()));
  }
  if (!plan.transposes.patterns().empty()) {
    ABSL_ASSIGN_OR_RETURN(transposes_, CompileLaneTranspose(name, plan.transposes.patterns()));
  }
  for (const Plan::PlannedUnit& planned : plan.units) {
    Unit unit;
    for (const BlockName& one : planned.sources) {
      const MemoryDesc& src = srcs[one.tensor];
      unit.sources.push_back({one.tensor,
                              (src.offset0() + one.block * src.stride(1)) * config.element_bytes,
                              src.stride(0) * config.element_bytes});
    }
    for (int64_t dst : planned.dsts) {
      unit.dsts.push_back(dst_offset_ + dst * dst_block_stride_);
    }
    unit.function = (planned.transposes ? transposes_ : gathers_).functions[planned.function];
    units_.push_back(std::move(unit));
  }
  return absl::OkStatus();
}

int64_t ChannelGather::code_bytes() const {
  int64_t bytes = 0;
  for (const LaneGather* gather : {&gathers_, &transposes_}) {
    if (gather->code != nullptr) bytes += static_cast<int64_t>(gather->code->code_bytes());
  }
  return bytes;
}

void ChannelGather::Run(absl::Span<const std::byte* const> srcs, std::byte* dst,
                        const threading::Team& team) const {
  team.ParallelFor(batch_ * pieces_ * unit_pieces_,
                   [&](int64_t index) { RunPiece(srcs, dst, index); });
}

void ChannelGather::RunPiece(absl::Span<const std::byte* const> srcs, std::byte* dst,
                             int64_t index) const {
  const auto units =
      absl::MakeConstSpan(units_).subspan(index % unit_pieces_ * units_at_once_, units_at_once_);
  index /= unit_pieces_;
  const int64_t first = index % pieces_ * piece_bytes_, image = index / pieces_;
  std::array<const std::byte*, kMostSources> sources;
  std::array<std::byte*, kMostSources> dsts;
  const LaneGatherArgs args = {sources.data(), dsts.data(),
                               std::min(piece_bytes_, run_bytes_ - first)};
  for (const Unit& unit : units) {
    for (size_t s = 0; s < unit.sources.size(); ++s) {
      const SourceBlock& source = unit.sources[s];
      sources[s] = srcs[source.tensor] + source.offset + image * source.image_stride + first;
    }
    for (size_t d = 0; d < unit.dsts.size(); ++d) {
      dsts[d] = dst + unit.dsts[d] + image * dst_image_stride_ + first;
    }
    unit.function(&args);
  }
}

}  // namespace tilewire
