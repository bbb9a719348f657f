// SPDX-License-Identifier: Apache-2.0
//
// Padding is always shorter than a block, so on each dimension it lies in the last outer block
// only. There the padded elements of an inner block are the same runs in every block, so they are
// found once and visited for all positions of the other dimensions. An element that is padding on
// two dimensions is visited twice, which does no harm.
#include "engine/memory/zero_padding.h"

#include <cstring>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tilewire {
namespace {

// Bytes [begin, end) of an inner block.
struct Run {
  int64_t begin;
  int64_t end;
};

// The index on dimension `d` of the element at `position` of an inner block.
int64_t InnerIndex(const MemoryDesc& desc, int d, int64_t position) {
  int64_t index = 0, scale = 1;
  for (auto block = desc.inner_blocks().rbegin(); block != desc.inner_blocks().rend(); ++block) {
    if (block->dim == d) {
      index += position % block->size * scale;
      scale *= block->size;
    }
    position /= block->size;
  }
  return index;
}

std::vector<Run> PaddedRuns(const MemoryDesc& desc, int d) {
  const int64_t block = desc.BlockSize(d);
  const int64_t used = desc.dim(d) - (desc.padded_dims()[d] - block);
  const int64_t element_bytes = SizeOf(desc.data_type());
  int64_t inner_size = 1;
  for (const InnerBlock& inner : desc.inner_blocks()) inner_size *= inner.size;
  std::vector<Run> runs;
  for (int64_t position = 0; position < inner_size; ++position) {
    if (InnerIndex(desc, d, position) < used) continue;
    const int64_t begin = position * element_bytes;
    if (!runs.empty() && runs.back().end == begin) {
      runs.back().end += element_bytes;
    } else {
      runs.push_back({begin, begin + element_bytes});
    }
  }
  return runs;
}

// Calls `visit` with the byte offset of every inner block that lies last on dimension `padded_dim`.
void ForEachLastBlock(const MemoryDesc& desc, int padded_dim,
                      absl::FunctionRef<void(int64_t)> visit) {
  struct Loop {
    int64_t count, step, index;
  };
  const int64_t element_bytes = SizeOf(desc.data_type());
  int64_t offset = desc.offset0() * element_bytes;
  std::vector<Loop> loops;
  for (int d = desc.rank() - 1; d >= 0; --d) {
    const int64_t count = desc.padded_dims()[d] / desc.BlockSize(d);
    const int64_t step = desc.stride(d) * element_bytes;
    if (d == padded_dim) {
      offset += (count - 1) * step;
    } else if (count > 1) {
      loops.push_back({count, step, 0});
    }
  }
  while (true) {
    visit(offset);
    size_t i = 0;
    for (; i < loops.size(); ++i) {
      Loop& loop = loops[i];
      offset += loop.step;
      if (++loop.index < loop.count) break;
      offset -= loop.count * loop.step;
      loop.index = 0;
    }
    if (i == loops.size()) return;
  }
}

}  // namespace

void ZeroPadding(const MemoryDesc& desc, void* data) {
  if (!desc.HasPadding() || desc.ElementCount() == 0) return;
  auto* bytes = static_cast<std::byte*>(data);
  for (int d = 0; d < desc.rank(); ++d) {
    if (desc.dim(d) == desc.padded_dims()[d]) continue;
    const std::vector<Run> runs = PaddedRuns(desc, d);
    ForEachLastBlock(desc, d, [&](int64_t offset) {
      for (const Run& run : runs) std::memset(bytes + offset + run.begin, 0, run.end - run.begin);
    });
  }
}

}  // namespace tilewire
