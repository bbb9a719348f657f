// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/run_walk.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::lrn {
namespace {

constexpr int64_t kRunPixelsPerTask = 1024, kRunPixelsOfPasses = 512;
constexpr int64_t kFloatBytes = sizeof(float);

struct Range {
  int64_t begin, end;
};
// The neighbours of `i` as distances from it.
Range Neighbours(int64_t i, int64_t reach, int64_t size) {
  return {std::max(-reach, -i), std::min(reach + 1, size - i)};
}

}  // namespace

RunWalk::Layout RunWalk::LayoutOf(const MemoryDesc& md) {
  Layout layout;
  const int rank = md.rank();
  for (int d = 2; d < rank; ++d) {
    layout.size[d + 3 - rank] = md.dim(d);
    layout.stride[d + 3 - rank] = md.stride(d);
  }
  layout.channel_stride = md.stride(1);
  if (md.inner_blocks().empty() && md.stride(1) != 1) {
    layout.channels = md.dim(1);
  } else if (md.inner_blocks().empty()) {
    layout.cell = md.dim(1);  // all channels in one cell, even if there are none
  } else {
    layout.cell = md.BlockSize(1);
    layout.channels = md.padded_dims()[1] / layout.cell;
  }
  return layout;
}

// The distance between pixels that follow each other, 0 where it is not constant.
int64_t RunWalk::PixelStep(const Layout& layout) {
  int64_t step = 0, next = 0;
  for (int d = 2; d >= 0; --d) {
    if (layout.size[d] == 1) continue;
    if (step == 0) {
      step = next = layout.stride[d];
    }
    if (layout.stride[d] != next) return 0;
    next *= layout.size[d];
  }
  return step == 0 ? layout.cell : step;
}

absl::Status RunWalk::Require(const LrnDesc& desc) {
  const MemoryDesc& md = desc.src;
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim != 1) return Unimplemented("blocked on another axis than 1");
  }
  const Layout layout = LayoutOf(md);
  if (desc.algorithm == LrnAlgorithm::kWithinChannel) {
    if (ReachOf(desc) > 64) return Unimplemented("local_size over 129");
    if (layout.size[2] > 1 && layout.stride[2] != layout.cell) {
      return Unimplemented("pixels of a row do not follow each other");
    }
    return absl::OkStatus();
  }
  if (!md.inner_blocks().empty()) return Unimplemented("channels in blocks");
  const int64_t step = PixelStep(layout);
  if (layout.cell == 1 ? step != 1 : step == 0) {
    return Unimplemented("neither pixels nor channels follow each other");
  }
  return absl::OkStatus();
}

RunWalk::RunWalk(const LrnDesc& desc)
    : desc_(desc),
      layout_(LayoutOf(desc.src)),
      pixels_(layout_.size[0] * layout_.size[1] * layout_.size[2]) {}

void RunWalk::ForEach(const threading::Team& team, absl::Span<const Visit> passes) const {
  if (desc_.src.ElementCount() == 0) return;
  desc_.algorithm == LrnAlgorithm::kWithinChannel ? Within(team, passes) : Across(team, passes);
}

void RunWalk::Across(const threading::Team& team, absl::Span<const Visit> passes) const {
  const int64_t step = PixelStep(layout_);
  const int64_t per_task = layout_.cell != 1    ? kRunPixelsPerTask / 16
                           : passes.size() == 1 ? kRunPixelsPerTask
                                                : kRunPixelsOfPasses;
  const int64_t pieces = DivUp(pixels_, per_task);
  team.ParallelFor(desc_.src.dim(0) * pieces, [&](int64_t task) {
    const int64_t first = task % pieces * per_task;
    const int64_t count = std::min(per_task, pixels_ - first);
    const int64_t offset = task / pieces * desc_.src.stride(0) + first * step;
    for (const Visit& visit : passes) {
      if (layout_.cell == 1) {
        AcrossPlanes(offset, count, visit);
        continue;
      }
      for (int64_t p = 0; p < count; ++p) AcrossCell(offset + p * step, visit);
    }
  });
}

// nchw: so many pixels of every channel.
void RunWalk::AcrossPlanes(int64_t offset, int64_t pixels, Visit visit) const {
  for (int64_t c = 0; c < layout_.channels && !threading::Stopped(); ++c) {
    const Range range = Neighbours(c, ReachOf(desc_), layout_.channels);
    Taps taps;
    for (int64_t t = range.begin; t < range.end; ++t) {
      taps.push_back(t * layout_.channel_stride * kFloatBytes);
    }
    visit(offset + c * layout_.channel_stride, taps, pixels);
  }
}

// nhwc: the channels of one pixel.
void RunWalk::AcrossCell(int64_t offset, Visit visit) const {
  const int64_t reach = ReachOf(desc_);
  for (int64_t c = 0, count = 0; c < layout_.cell && !threading::Stopped(); c += count) {
    const Range range = Neighbours(c, reach, layout_.cell);
    const bool inner = range.begin == -reach && range.end == reach + 1;
    count = inner ? layout_.cell - reach - c : 1;
    Taps taps;
    for (int64_t t = range.begin; t < range.end; ++t) taps.push_back(t * kFloatBytes);
    visit(offset + c, taps, count);
  }
}

// Depths are neighbours of each other: only a single pass may take them apart.
void RunWalk::Within(const threading::Team& team, absl::Span<const Visit> passes) const {
  const int64_t depths = passes.size() == 1 ? 1 : layout_.size[0];
  const int64_t parts = layout_.size[0] / depths;
  team.ParallelFor(desc_.src.dim(0) * layout_.channels * parts, [&](int64_t task) {
    const int64_t first = task % parts * depths, c = task / parts % layout_.channels;
    const int64_t n = task / parts / layout_.channels;
    const int64_t offset = n * desc_.src.stride(0) + c * layout_.channel_stride;
    for (const Visit& visit : passes) {
      for (int64_t depth = first; depth < first + depths; ++depth) {
        for (int64_t height = 0; height < layout_.size[1]; ++height)
          WithinRow(offset, depth, height, visit);
      }
    }
  });
}

void RunWalk::WithinRow(int64_t offset, int64_t depth, int64_t height, Visit visit) const {
  const int64_t reach = ReachOf(desc_), width = layout_.size[2];
  const Range depths = Neighbours(depth, reach, layout_.size[0]);
  const Range heights = Neighbours(height, reach, layout_.size[1]);
  const int64_t row = depth * layout_.stride[0] + height * layout_.stride[1];
  for (int64_t w = 0, count = 0; w < width && !threading::Stopped(); w += count) {
    const Range widths = Neighbours(w, reach, width);
    const bool inner = widths.begin == -reach && widths.end == reach + 1;
    count = inner ? width - reach - w : 1;
    Taps taps;
    for (int64_t d = depths.begin; d < depths.end; ++d) {
      for (int64_t h = heights.begin; h < heights.end; ++h) {
        const int64_t to_row = d * layout_.stride[0] + h * layout_.stride[1];
        for (int64_t t = widths.begin; t < widths.end; ++t) {
          taps.push_back((to_row + t * layout_.stride[2]) * kFloatBytes);
        }
      }
    }
    visit(offset + row + w * layout_.stride[2], taps, count * layout_.cell);
  }
}

}  // namespace tilewire::lrn
