// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/lanes.h"

#include <algorithm>

#include "engine/base/status_macros.h"

namespace tilewire::pooling {
namespace {

bool HasNeighbours(const MemoryDesc& desc) {
  return desc.IsPlain() && (desc.stride(1) == 1 || desc.dim(1) == 1);
}

bool HasBlocks(const MemoryDesc& desc) {
  const InnerBlocks& blocks = desc.inner_blocks();
  return blocks.size() == 1 && blocks[0].dim == 1 && blocks[0].size % kLanes == 0;
}

int64_t OffsetOf(const MemoryDesc& desc, int64_t channel) {
  const int64_t block = desc.BlockSize(1);
  return channel / block * desc.stride(1) + channel % block;
}

}  // namespace

LaneLayout::LaneLayout(const PoolingDesc& desc)
    : images(desc.src.dim(0)),
      src_image(desc.src.stride(0)),
      dst_image(desc.dst.stride(0)),
      src_first(desc.src.offset0()),
      dst_first(desc.dst.offset0()) {
  const int64_t channels = desc.src.IsPlain() ? desc.src.dim(1) : desc.src.padded_dims()[1];
  for (int64_t c = 0; c < channels; c += kLanes) {
    groups.push_back({OffsetOf(desc.src, c), OffsetOf(desc.dst, c),
                      static_cast<int>(std::min<int64_t>(kLanes, channels - c))});
  }
  for (int d = 0; d < 3; ++d) {
    axes[d] = AxisOf(desc, 2 - d);
    axes[d].src_stride /= static_cast<int64_t>(sizeof(float));
    axes[d].dst_stride /= static_cast<int64_t>(sizeof(float));
  }
}

void LaneLayout::ForEachPair(const threading::Team& team,
                             absl::FunctionRef<void(int64_t, int64_t, int64_t)> body) const {
  const auto count = static_cast<int64_t>(groups.size()), pairs = (count + 1) / 2;
  team.ParallelFor(images * pairs, [&](int64_t index) {
    const int64_t first = index % pairs * 2;
    body(index / pairs, first, std::min(first + 2, count));
  });
}

bool LaneLayout::IsBlock(int64_t first, int64_t end) const {
  if (end - first != 2) return false;
  const LaneGroup &one = groups[first], &other = groups[first + 1];
  return one.count == kLanes && other.count == kLanes && other.src == one.src + kLanes &&
         other.dst == one.dst + kLanes;
}

absl::Status RequireLanes(const PoolingDesc& desc) {
  const bool blocks = HasBlocks(desc.src) && HasBlocks(desc.dst) &&
                      desc.src.inner_blocks() == desc.dst.inner_blocks();
  if (!blocks && !(HasNeighbours(desc.src) && HasNeighbours(desc.dst))) {
    return Unimplemented("takes channels that are neighbours, not ", desc.src.ToString(), " and ",
                         desc.dst.ToString());
  }
  if (SavesPlaces(desc) && PlaceType(desc) != DataType::kU8)
    return Unimplemented("takes windows of up to 256 taps");
  return absl::OkStatus();
}

}  // namespace tilewire::pooling
