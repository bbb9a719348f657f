// SPDX-License-Identifier: Apache-2.0
//
// The gradient of an average over whole planes: all pixels of a plane get the same number. A plane
// of blocks of channels has a number for each channel, side by side at every pixel.
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::pooling {
namespace {

constexpr int64_t kPixelsAtOnce = 16 * 1024;

int64_t PixelsOf(const PoolingDesc& desc) {
  int64_t pixels = 1;
  for (int d = 2; d < desc.src.rank(); ++d) pixels *= desc.src.dim(d);
  return pixels;
}

// Whether one window, along each dimension, holds all of src.
bool IsOfWholePlanes(const PoolingDesc& desc) {
  for (int d = 0; d + 2 < desc.src.rank(); ++d) {
    if (desc.dst.dim(d + 2) != 1 || desc.kernel[d] - desc.padding_left[d] < desc.src.dim(d + 2))
      return false;
  }
  return true;
}

constexpr int64_t kMostLanes = 16;

// Channels side by side at a pixel: 1, or the block of 8 or 16; 0 where channels lie otherwise.
int64_t LanesOf(const MemoryDesc& desc) {
  if (desc.IsPlain()) return 1;
  for (int64_t lanes : {int64_t{8}, kMostLanes})
    if (desc.inner_blocks() == InnerBlocks{{1, lanes}}) return lanes;
  return 0;
}

bool HasDensePlanes(const MemoryDesc& desc) {
  int64_t stride = LanesOf(desc);
  if (stride == 0) return false;
  for (int d = desc.rank() - 1; d >= 2; --d) {
    if (desc.dim(d) > 1 && desc.stride(d) != stride) return false;
    stride *= desc.dim(d);
  }
  return true;
}

struct WholeAverage {
  void Run(const DrivenRun& run) const {
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    auto* const diff_src = run.First<float>(kArgDiffSrc);
    const int64_t groups = src.padded_dims()[1] / lanes;
    const auto fill = [&](int64_t plane) {
      const int64_t n = plane / groups, group = plane % groups;
      const float* const from = diff_dst + n * dst.stride(0) + group * dst.stride(1);
      float* const to = diff_src + n * src.stride(0) + group * src.stride(1);
      lanes == 1 ? Fill<1>(from, to) : lanes == 8 ? Fill<8>(from, to) : Fill<kMostLanes>(from, to);
    };
    threading::ParallelForItems(run.team, src.dim(0) * groups,
                                threading::ItemsAtOnce(kPixelsAtOnce, pixels * lanes), fill);
  }
  size_t code_bytes() const { return 0; }

  template <int64_t kLanes>
  void Fill(const float* from, float* to) const {
    float line[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane)
      line[lane] = static_cast<float>(0 + from[lane] / divisor);
    for (int64_t pixel = 0; pixel < pixels; ++pixel) std::copy_n(line, kLanes, to + pixel * kLanes);
  }

  MemoryDesc src, dst;
  int64_t lanes, pixels;  // of a plane
  double divisor;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveWholeAverageBackward(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveReferenceBackward(request));
  if (resolved.algorithm == PoolingAlgorithm::kMax)
    return Unimplemented("takes averages, not maxima");
  if (!IsOfWholePlanes(resolved)) return Unimplemented("takes windows that hold all of src");
  if (!HasDensePlanes(resolved.src) || LanesOf(resolved.dst) != LanesOf(resolved.src)) {
    return Unimplemented("takes plain tensors and blocks of 8 or 16 channels, with pixels that ",
                         "follow each other, not ", resolved.src.ToString(), " and ",
                         resolved.dst.ToString());
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWholeAverageBackward(
    const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  const int64_t pixels = PixelsOf(desc);
  const bool pads = desc.algorithm == PoolingAlgorithm::kAvgIncludePadding;
  return MakeDriven(BackwardInfoOf(request),
                    WholeAverage{desc.src, desc.dst, LanesOf(desc.src), pixels,
                                 static_cast<double>(pads ? WindowOf(desc) : pixels)});
}

}  // namespace tilewire::pooling
