// SPDX-License-Identifier: Apache-2.0
//
// The gradient of an average over whole planes: all pixels of a plane get the same number.
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

bool HasDensePlanes(const MemoryDesc& desc) {
  if (!desc.IsPlain()) return false;
  int64_t stride = 1;
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
    const int64_t channels = src.dim(1);
    const auto fill = [&](int64_t plane) {
      const int64_t n = plane / channels, c = plane % channels;
      const double sum = 0 + diff_dst[n * dst.stride(0) + c * dst.stride(1)] / divisor;
      float* const to = diff_src + n * src.stride(0) + c * src.stride(1);
      std::fill(to, to + pixels, static_cast<float>(sum));
    };
    threading::ParallelForItems(run.team, src.dim(0) * channels,
                                threading::ItemsAtOnce(kPixelsAtOnce, pixels), fill);
  }
  size_t code_bytes() const { return 0; }

  MemoryDesc src, dst;
  int64_t pixels;  // of a plane
  double divisor;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveWholeAverageBackward(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveReferenceBackward(request));
  if (resolved.algorithm == PoolingAlgorithm::kMax)
    return Unimplemented("takes averages, not maxima");
  if (!IsOfWholePlanes(resolved)) return Unimplemented("takes windows that hold all of src");
  if (!HasDensePlanes(resolved.src) || !resolved.dst.IsPlain()) {
    return Unimplemented("takes plain tensors with pixels that follow each other, not ",
                         resolved.src.ToString(), " and ", resolved.dst.ToString());
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWholeAverageBackward(
    const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  const int64_t pixels = PixelsOf(desc);
  const bool pads = desc.algorithm == PoolingAlgorithm::kAvgIncludePadding;
  return MakeDriven(BackwardInfoOf(request),
                    WholeAverage{desc.src, desc.dst, pixels,
                                 static_cast<double>(pads ? WindowOf(desc) : pixels)});
}

}  // namespace tilewire::pooling
