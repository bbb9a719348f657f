// SPDX-License-Identifier: Apache-2.0
//
// One spatial dimension of a pooling; depth and height that a tensor lacks are of size 1. Pure;
// thread-safe.
#ifndef ENGINE_PRIMITIVES_POOLING_AXIS_H_
#define ENGINE_PRIMITIVES_POOLING_AXIS_H_

#include <algorithm>
#include <cstdint>

#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, padding = 0;
  int64_t src_stride = 0, dst_stride = 0;  // bytes

  // The part of window `o` that lies in src.
  int64_t Begin(int64_t o) const { return std::max<int64_t>(o * stride - padding, 0); }
  int64_t Taps(int64_t o) const { return std::min(o * stride - padding + kernel, in) - Begin(o); }
  // The number of its first tap.
  int64_t FirstTap(int64_t o) const { return Begin(o) - (o * stride - padding); }
};

// `back` counts from W: 0 is width, 1 height, 2 depth.
inline Axis AxisOf(const PoolingDesc& desc, int back) {
  const int d = static_cast<int>(desc.kernel.size()) - 1 - back;
  if (d < 0) return {};
  const int64_t size = SizeOf(desc.src.data_type());
  return {desc.src.dim(d + 2),
          desc.dst.dim(d + 2),
          desc.kernel[d],
          desc.strides[d],
          desc.padding_left[d],
          desc.src.stride(d + 2) * size,
          desc.dst.stride(d + 2) * size};
}

// Taps of a whole window.
inline int64_t WindowOf(const PoolingDesc& desc) {
  int64_t window = 1;
  for (int64_t kernel : desc.kernel) window *= kernel;
  return window;
}

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_AXIS_H_
