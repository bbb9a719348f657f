// SPDX-License-Identifier: Apache-2.0
//
// Axis 1 of [N, C, spatial...] where the spatial indices advance by one constant step (nchw, nhwc,
// nChw8c, nChw16c and their 1D and 3D kin): element (n, c, p) stands at n * batch_stride +
// channel[c] + p * pixel_stride. Where pixels are neighbours (nchw) a channel moves by memcpy;
// elsewhere channels are gathered a block at a time, pixel after pixel.
#include <algorithm>
#include <cstring>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/shuffle/implementations.h"

namespace tilewire::shuffle {
namespace {

constexpr int64_t kPixelsPerTask = 256;
constexpr int64_t kChannelsPerStep = 16;

// Immutable. T has the size of an element.
template <typename T>
class Blocked final : public Primitive {
 public:
  Blocked(PrimitiveInfo primitive_info, const ShuffleDesc& desc)
      : Primitive(std::move(primitive_info)),
        batch_(desc.src.dim(0)),
        batch_stride_(desc.src.stride(0)),
        pixel_stride_(desc.src.stride(desc.src.rank() - 1)) {
    for (int d = 2; d < desc.src.rank(); ++d) pixels_ *= desc.src.dim(d);
    Dims index(desc.src.rank(), 0);
    const auto channel = [&](int64_t c) {
      index[1] = c;
      return desc.src.Offset(index) - desc.src.offset0();
    };
    for (int64_t source : SourceIndices(desc)) {
      from_.push_back(channel(source));
      to_.push_back(channel(static_cast<int64_t>(to_.size())));
    }
    for (int64_t c = desc.src.dim(1); c < desc.src.padded_dims()[1]; ++c) {
      tail_.push_back(channel(c));
    }
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = First<const T>(args, info().args[0].arg);
    auto* dst = First<T>(args, info().args[1].arg);
    const int64_t pieces = DivUp(pixels_, kPixelsPerTask);
    team.ParallelFor(batch_ * pieces, [&](int64_t task) {
      const int64_t first = task % pieces * kPixelsPerTask;
      const int64_t count = std::min(kPixelsPerTask, pixels_ - first);
      const int64_t offset = task / pieces * batch_stride_ + first * pixel_stride_;
      if (pixel_stride_ == 1) {
        CopyChannels(src + offset, dst + offset, count);
      } else {
        GatherChannels(src + offset, dst + offset, count);
      }
    });
  }

  void CopyChannels(const T* src, T* dst, int64_t pixels) const {
    for (size_t c = 0; c < to_.size(); ++c) {
      std::memcpy(dst + to_[c], src + from_[c], pixels * sizeof(T));
    }
  }

  void GatherChannels(const T* src, T* dst, int64_t pixels) const {
    const int64_t channels = static_cast<int64_t>(to_.size());
    for (int64_t first = 0; first < channels; first += kChannelsPerStep) {
      const int64_t end = std::min(channels, first + kChannelsPerStep);
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t pixel = p * pixel_stride_;
        for (int64_t c = first; c < end; ++c) dst[to_[c] + pixel] = src[from_[c] + pixel];
      }
    }
    for (int64_t p = 0; p < pixels; ++p) {
      for (int64_t offset : tail_) dst[offset + p * pixel_stride_] = 0;
    }
  }

  const int64_t batch_, batch_stride_, pixel_stride_;
  int64_t pixels_ = 1;
  std::vector<int64_t> from_, to_;  // element offsets of channels: where dst's channel comes from
  std::vector<int64_t> tail_;       // of the channels that only pad
};

}  // namespace

absl::StatusOr<ShuffleDesc> ResolveBlocked(const Request<ShuffleDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ShuffleDesc resolved, ResolveReference(request));
  const MemoryDesc& md = resolved.src;
  if (resolved.axis != 1 || md.rank() < 3) {
    return Unimplemented("not axis 1 of [N, C, spatial...]");
  }
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim != 1) return Unimplemented("blocked on another axis than 1");
  }
  int64_t step = md.stride(md.rank() - 1);
  for (int d = md.rank() - 1; d >= 2; --d) {
    if (md.stride(d) != step) return Unimplemented("pixels without a constant step");
    step *= md.dim(d);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(const Request<ShuffleDesc>& request) {
  return MakeCopying<Blocked>(request.desc.dst.data_type(), InfoOf(request), request.desc);
}

}  // namespace tilewire::shuffle
