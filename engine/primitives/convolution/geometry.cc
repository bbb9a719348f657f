// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/geometry.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {

Geometry GeometryOf(const ConvolutionDesc& desc) {
  Geometry geometry;
  const int spatial = desc.src.rank() - 2;
  const int group = desc.weights.rank() == desc.src.rank() + 1 ? 1 : 0;
  geometry.grouped_weights = group == 1;
  geometry.batch = desc.src.dim(0);
  geometry.groups = group == 1 ? desc.weights.dim(0) : 1;
  geometry.oc = desc.weights.dim(group);
  geometry.ic = desc.weights.dim(group + 1);
  for (int i = 0; i < spatial; ++i) {
    const int d = 3 - spatial + i;
    geometry.in[d] = desc.src.dim(2 + i);
    geometry.out[d] = desc.dst.dim(2 + i);
    geometry.kernel[d] = desc.weights.dim(group + 2 + i);
    geometry.stride[d] = desc.strides[i];
    geometry.tap_step[d] = desc.dilations[i] + 1;
    geometry.pad[d] = desc.padding_left[i];
  }
  return geometry;
}

Spatial SpatialStrides(const MemoryDesc& desc, int first) {
  Spatial strides{0, 0, 0};
  const int spatial = desc.rank() - first;
  for (int i = 0; i < spatial; ++i) strides[3 - spatial + i] = desc.stride(first + i);
  return strides;
}

TapRange ValidTaps(const Geometry& geometry, int d, int64_t o) {
  const int64_t first = o * geometry.stride[d] - geometry.pad[d];  // where tap 0 reads
  const int64_t step = geometry.tap_step[d];
  const auto taps = [step](int64_t pixels) { return step == 1 ? pixels : DivUp(pixels, step); };
  const int64_t begin = first >= 0 ? 0 : taps(-first);
  const int64_t end = first >= geometry.in[d] ? 0 : taps(geometry.in[d] - first);
  return {std::min(begin, geometry.kernel[d]),
          std::max(std::min(end, geometry.kernel[d]), std::min(begin, geometry.kernel[d]))};
}

void TurnColumns(Geometry* geometry, Spatial* src_strides, Spatial* dst_strides) {
  constexpr int64_t kNarrow = 4;
  const Spatial &out = geometry->out, &kernel = geometry->kernel;
  if (out[2] > kNarrow || out[1] <= out[2] || (kernel[1] != 1 && kernel[2] != 1)) return;
  for (Spatial* sizes : {&geometry->in, &geometry->out, &geometry->kernel, &geometry->stride,
                         &geometry->tap_step, &geometry->pad, src_strides, dst_strides}) {
    std::swap((*sizes)[1], (*sizes)[2]);
  }
}

int64_t ImagesAtOnce(int64_t batch, int64_t image_bytes) {
  constexpr int64_t kBytesAtOnce = 4 << 20;
  int64_t images = 1;
  for (int64_t i = 2; i <= batch && i <= kBytesAtOnce / std::max<int64_t>(1, image_bytes); ++i) {
    if (batch % i == 0) images = i;
  }
  return images;
}

void FlattenPixels(Geometry* geometry, const Spatial& src_strides, const Spatial& dst_strides) {
  const Spatial ones = {1, 1, 1}, in = geometry->in;
  if (geometry->kernel != ones || geometry->stride != ones || in != geometry->out ||
      geometry->pad != Spatial{0, 0, 0}) {
    return;
  }
  for (const Spatial& s : {src_strides, dst_strides}) {
    if (in[1] > 1 && s[1] != s[2] * in[2]) return;
    if (in[0] > 1 && s[0] != s[2] * in[2] * in[1]) return;
  }
  geometry->in = geometry->out = {1, 1, in[0] * in[1] * in[2]};
}

}  // namespace tilewire::convolution
