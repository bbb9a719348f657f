// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/channel_gather.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr int64_t kPiecePixels = 256;
constexpr int kMostSources = 16;  // lanes of the widest block

// Dimension 1 alone is blocked, and the blocks of all pixels follow each other.
absl::Status RequireDensePixels(const MemoryDesc& desc, int64_t lanes) {
  if (desc.inner_blocks().size() != 1 || desc.inner_blocks()[0] != InnerBlock{1, lanes}) {
    return absl::UnimplementedError(
        absl::StrCat(desc.ToString(), " has no blocks of ", lanes, " channels"));
  }
  int64_t step = lanes;
  for (int d = desc.rank() - 1; d >= 2; --d) {
    if (desc.dim(d) != 1 && desc.stride(d) != step) {
      return absl::UnimplementedError(absl::StrCat(desc.ToString(), " has gaps between pixels"));
    }
    step *= desc.dim(d);
  }
  return absl::OkStatus();
}

LaneGatherConfig ConfigOf(const MemoryDesc& desc, cpu::Isa isa) {
  return {isa, static_cast<int>(desc.BlockSize(1)), static_cast<int>(SizeOf(desc.data_type()))};
}

// One block of dst: which source blocks it needs, and the lanes it takes of them.
struct BlockOrigin {
  std::vector<ChannelSource> blocks;  // `channel` counts blocks here
  LanePattern pattern;
};

BlockOrigin OriginOf(absl::Span<const ChannelSource> channels, int lanes) {
  BlockOrigin origin;
  origin.pattern.resize(lanes);
  for (size_t lane = 0; lane < channels.size(); ++lane) {
    const int tensor = channels[lane].tensor;
    const int64_t block = channels[lane].channel / lanes;
    auto it = std::find_if(origin.blocks.begin(), origin.blocks.end(), [&](const auto& known) {
      return known.tensor == tensor && known.channel == block;
    });
    if (it == origin.blocks.end()) it = origin.blocks.insert(it, {tensor, block});
    origin.pattern[lane] = {static_cast<int>(it - origin.blocks.begin()),
                            static_cast<int>(channels[lane].channel % lanes)};
  }
  return origin;
}

}  // namespace

absl::Status ChannelGather::Require(absl::Span<const MemoryDesc> srcs, const MemoryDesc& dst,
                                    cpu::Isa isa) {
  if (dst.rank() < 2 || dst.inner_blocks().size() != 1) {
    return absl::UnimplementedError(absl::StrCat(dst.ToString(), " has no blocks of channels"));
  }
  const LaneGatherConfig config = ConfigOf(dst, isa);
  ABSL_RETURN_IF_ERROR(RequireLaneGather(config));
  ABSL_RETURN_IF_ERROR(RequireDensePixels(dst, config.lanes));
  for (const MemoryDesc& src : srcs) ABSL_RETURN_IF_ERROR(RequireDensePixels(src, config.lanes));
  return absl::OkStatus();
}

absl::StatusOr<ChannelGather> ChannelGather::Create(absl::string_view name, cpu::Isa isa,
                                                    absl::Span<const MemoryDesc> srcs,
                                                    const MemoryDesc& dst,
                                                    absl::Span<const ChannelSource> channels) {
  const LaneGatherConfig config = ConfigOf(dst, isa);
  const int64_t element = config.element_bytes, vector = config.lanes * element;
  ChannelGather gather;
  std::map<LanePattern, int> numbers;
  std::vector<LanePattern> patterns;
  for (size_t first = 0; first < channels.size(); first += config.lanes) {
    BlockOrigin origin = OriginOf(channels.subspan(first, config.lanes), config.lanes);
    const auto [it, is_new] = numbers.try_emplace(origin.pattern, numbers.size());
    if (is_new) patterns.push_back(origin.pattern);
    Block block{.sources = {}, .pattern = it->second};
    for (const ChannelSource& one : origin.blocks) {
      const MemoryDesc& src = srcs[one.tensor];
      block.sources.push_back({one.tensor, (src.offset0() + one.channel * src.stride(1)) * element,
                               src.stride(0) * element});
    }
    gather.blocks_.push_back(std::move(block));
  }
  gather.batch_ = dst.dim(0);
  gather.run_bytes_ = vector;
  for (int d = 2; d < dst.rank(); ++d) gather.run_bytes_ *= dst.dim(d);
  gather.dst_offset_ = dst.offset0() * element;
  gather.dst_image_stride_ = dst.stride(0) * element;
  gather.dst_block_stride_ = dst.stride(1) * element;
  gather.piece_bytes_ = kPiecePixels * vector;
  gather.pieces_ = DivUp(gather.run_bytes_, gather.piece_bytes_);
  ABSL_ASSIGN_OR_RETURN(gather.gather_, CompileLaneGather(name, config, patterns));
  return gather;
}

void ChannelGather::Run(absl::Span<const std::byte* const> srcs, std::byte* dst,
                        const threading::Team& team) const {
  team.ParallelFor(batch_ * static_cast<int64_t>(blocks_.size()) * pieces_,
                   [&](int64_t index) { RunPiece(srcs, dst, index); });
}

void ChannelGather::RunPiece(absl::Span<const std::byte* const> srcs, std::byte* dst,
                             int64_t index) const {
  const int64_t first = index % pieces_ * piece_bytes_;
  index /= pieces_;
  const int64_t number = index % static_cast<int64_t>(blocks_.size());
  const int64_t image = index / static_cast<int64_t>(blocks_.size());
  const Block& block = blocks_[number];
  std::array<const std::byte*, kMostSources> sources;
  for (size_t s = 0; s < block.sources.size(); ++s) {
    const SourceBlock& source = block.sources[s];
    sources[s] = srcs[source.tensor] + source.offset + image * source.image_stride + first;
  }
  const LaneGatherArgs args = {
      sources.data(),
      dst + dst_offset_ + image * dst_image_stride_ + number * dst_block_stride_ + first,
      std::min(piece_bytes_, run_bytes_ - first)};
  gather_.functions[block.pattern](&args);
}

}  // namespace tilewire
