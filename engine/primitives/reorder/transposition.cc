// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/transposition.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/kernels/moves/strided_loops.h"

namespace tilewire::reorder {
namespace {

constexpr int kDst = 0, kSrc = 1;  // strides of a loop

// The loop along which the neighbours of a side lie; -1 if there is none.
int NeighboursOf(const std::vector<StridedLoop>& loops, int side) {
  for (size_t i = loops.size(); i-- > 0;)
    if (loops[i].strides[side] == 1) return static_cast<int>(i);
  return -1;
}

// [first, channels, others..., pixels] from the loops, of which any but two may be missing.
std::optional<MemoryDesc> TensorOf(const MemoryDesc& desc, const std::vector<StridedLoop>& loops,
                                   int side) {
  Dims dims, strides;
  for (const StridedLoop& loop : loops) {
    dims.push_back(loop.count);
    strides.push_back(loop.strides[side]);
  }
  auto tensor = MemoryDesc::CreateStrided(std::move(dims), desc.data_type(), std::move(strides));
  return tensor.ok() ? std::optional(*std::move(tensor)) : std::nullopt;
}

// The dimensions but `lanes` that have more than one index, outermost in dst first: as many as
// stand beside the channels, the first in place of a batch.
std::vector<StridedLoop> LoopsBeside(const ReorderDesc& desc, int lanes) {
  constexpr size_t kMostSpatial = 3;
  std::vector<StridedLoop> loops;
  for (int d = 0; d < desc.src.rank(); ++d) {
    if (d == lanes || desc.src.dim(d) == 1) continue;
    loops.push_back(
        {.count = desc.src.dim(d), .strides = {desc.dst.stride(d), desc.src.stride(d)}});
  }
  std::stable_sort(loops.begin(), loops.end(), [](const StridedLoop& a, const StridedLoop& b) {
    return a.strides[kDst] > b.strides[kDst];
  });
  const StridedLoop one = {.count = 1, .strides = {0, 0}};
  if (loops.empty()) loops.push_back(one);
  if (loops.size() <= kMostSpatial) loops.insert(loops.begin(), one);
  return loops;
}

}  // namespace

std::optional<ReorderDesc> AsChannelsAndPixels(const ReorderDesc& desc) {
  constexpr size_t kMostOthers = 3;
  if (!desc.src.IsPlain() || !desc.dst.IsPlain() || desc.dst.ElementCount() == 0)
    return std::nullopt;
  const auto found = LoopsOver({&desc.dst, &desc.src});
  if (!found.ok()) return std::nullopt;
  const std::vector<StridedLoop>& loops = *found;
  int channels = NeighboursOf(loops, kSrc), pixels = NeighboursOf(loops, kDst);
  if (channels < 0 || pixels < 0 || channels == pixels || loops.size() > 2 + kMostOthers)
    return std::nullopt;
  if (loops[channels].count > loops[pixels].count) std::swap(channels, pixels);
  std::vector<StridedLoop> ordered;
  for (int i = 0; i < static_cast<int>(loops.size()); ++i)
    if (i != channels && i != pixels) ordered.push_back(loops[i]);
  if (ordered.empty()) ordered.push_back({.count = 1, .strides = {0, 0}});
  ordered.insert(ordered.begin() + 1, loops[channels]);
  ordered.push_back(loops[pixels]);
  const auto src = TensorOf(desc.src, ordered, kSrc), dst = TensorOf(desc.dst, ordered, kDst);
  if (!src || !dst) return std::nullopt;
  return ReorderDesc{*src, *dst};
}

std::optional<ReorderDesc> AsChannelBlocks(const ReorderDesc& desc) {
  constexpr size_t kMostLoops = 4;
  const InnerBlocks& blocks = desc.dst.inner_blocks();
  if (!desc.src.IsPlain() || blocks.size() != 1 || desc.dst.ElementCount() == 0)
    return std::nullopt;
  const int lanes = blocks[0].dim;
  std::vector<StridedLoop> loops = LoopsBeside(desc, lanes);
  if (desc.src.stride(lanes) != 1 || loops.size() > kMostLoops) return std::nullopt;
  loops.insert(loops.begin() + 1,
               {.count = desc.src.dim(lanes), .strides = {desc.dst.stride(lanes), 1}});
  const std::optional<MemoryDesc> src = TensorOf(desc.src, loops, kSrc);
  std::string pattern = absl::StrCat("aBcde", blocks[0].size, "b");
  pattern.erase(loops.size(), 5 - loops.size());
  Dims dims, strides;
  for (const StridedLoop& loop : loops) {
    dims.push_back(loop.count);
    strides.push_back(loop.strides[kDst]);
  }
  const auto dense = MemoryDesc::CreatePattern(dims, desc.dst.data_type(), pattern);
  const auto dst = dense.ok() ? dense->WithStrides(strides) : dense;
  if (!src || !dst.ok()) return std::nullopt;
  return ReorderDesc{*src, *dst};
}

}  // namespace tilewire::reorder
