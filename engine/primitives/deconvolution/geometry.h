// SPDX-License-Identifier: Apache-2.0
//
// A deconvolution as plain numbers: 1D and 2D written as 3D with leading spatial dimensions of size
// 1, channels counted per group, dilation counted as the distance between taps (1 is dense).
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_GEOMETRY_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/primitives/deconvolution/deconvolution.h"

namespace tilewire::deconvolution {

// One tap that reaches an element of dst, and the element of src that it brings there.
struct Source {
  int64_t tap, position;
  bool operator==(const Source&) const = default;
};

// One spatial dimension.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, tap_step = 1, pad = 0;
  int64_t src_stride = 0, weights_stride = 0, dst_stride = 0;  // elements; of plain dimensions

  // The sources of output `o`, in the order of taps.
  std::vector<Source> SourcesOf(int64_t o) const;
};

struct Geometry {
  int64_t batch = 0, groups = 1;
  int64_t ic = 0, oc = 0;        // per group
  bool grouped_weights = false;  // weights have the rank of [G,O/G,I/G,...]
  Axis axes[3];                  // depth, height, width
};

// `desc` has been validated. The strides are meaningful once it has layouts.
Geometry GeometryOf(const DeconvolutionDesc& desc);

// The elements of dst along all dimensions, and the taps that reach one of them, at most.
struct OutputWork {
  double outputs = 1, taps = 1;
};
OutputWork WorkOf(const Geometry& geometry);

//   kInvalidArgument  shapes, strides, dilations or paddings that do not fit; the message names the
//                     dimension
absl::Status Validate(const DeconvolutionDesc& desc, const Attributes& attributes);

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_GEOMETRY_H_
