// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/moves/strided_loops.h"

#include <algorithm>
#include <optional>

#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

// A loop of the first tensor: over dimension `dim` in steps of `step` indices. `block` is the place
// in inner_blocks() of the block it runs inside, -1 for the loop over outer blocks.
struct PhysicalLoop {
  int dim, block;
  int64_t count, step;
};

// The product of the blocks after `first` that satisfy `counts`.
template <typename Counts>
int64_t SizeAfter(const InnerBlocks& blocks, int first, Counts counts) {
  int64_t size = 1;
  for (int i = first + 1; i < static_cast<int>(blocks.size()); ++i) {
    if (counts(blocks[i])) size *= blocks[i].size;
  }
  return size;
}

std::vector<PhysicalLoop> LoopsOfFirst(const MemoryDesc& md) {
  std::vector<PhysicalLoop> loops;
  for (int d = 0; d < md.rank(); ++d) {
    loops.push_back({d, -1, md.padded_dims()[d] / md.BlockSize(d), md.BlockSize(d)});
  }
  std::stable_sort(loops.begin(), loops.end(), [&](const PhysicalLoop& a, const PhysicalLoop& b) {
    return md.stride(a.dim) > md.stride(b.dim);
  });
  const InnerBlocks& blocks = md.inner_blocks();
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const int dim = blocks[i].dim;
    const auto same = [dim](const InnerBlock& block) { return block.dim == dim; };
    loops.push_back({dim, i, blocks[i].size, SizeAfter(blocks, i, same)});
  }
  return loops;
}

// The sizes of the blocks on one dimension.
absl::InlinedVector<int64_t, 4> BlocksOn(const MemoryDesc& md, int dim) {
  absl::InlinedVector<int64_t, 4> sizes;
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim == dim) sizes.push_back(block.size);
  }
  return sizes;
}

// The step of `md` along a loop of `first`; nullopt where it is not constant.
std::optional<int64_t> StepOf(const MemoryDesc& md, const MemoryDesc& first,
                              const PhysicalLoop& loop) {
  const int d = loop.dim;
  if (md.dim(d) == first.dim(d) && BlocksOn(md, d) == BlocksOn(first, d)) {
    if (loop.block < 0) return md.stride(d);
    // The block of `md` that is as far from the last one on its dimension.
    int place = static_cast<int>(md.inner_blocks().size());
    for (int i = static_cast<int>(first.inner_blocks().size()) - 1; i >= loop.block; --i) {
      if (first.inner_blocks()[i].dim != d) continue;
      do --place;
      while (md.inner_blocks()[place].dim != d);
    }
    return SizeAfter(md.inner_blocks(), place, [](const InnerBlock&) { return true; });
  }
  if (md.dim(d) == 1) return 0;
  if (md.BlockSize(d) != 1 || first.dim(d) != first.padded_dims()[d]) return std::nullopt;
  return loop.step * md.stride(d);
}

bool Continues(const StridedLoop& outer, const StridedLoop& inner) {
  for (size_t i = 0; i < outer.strides.size(); ++i) {
    if (outer.strides[i] != inner.count * inner.strides[i]) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::vector<StridedLoop>> LoopsOver(absl::Span<const MemoryDesc* const> tensors) {
  const MemoryDesc& first = *tensors[0];
  std::vector<StridedLoop> loops;
  for (const PhysicalLoop& physical : LoopsOfFirst(first)) {
    if (physical.count == 1) continue;
    StridedLoop loop;
    loop.count = physical.count;
    for (const MemoryDesc* tensor : tensors) {
      const std::optional<int64_t> step = StepOf(*tensor, first, physical);
      if (!step) {
        return Unimplemented(tensor->ToString(), " does not follow the order of ",
                             first.ToString());
      }
      loop.strides.push_back(*step);
    }
    if (!loops.empty() && Continues(loops.back(), loop)) {
      loop.count *= loops.back().count;
      loops.back() = loop;
    } else {
      loops.push_back(loop);
    }
  }
  return loops;
}

}  // namespace tilewire
