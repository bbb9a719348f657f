// SPDX-License-Identifier: Apache-2.0
//
// A convolution as plain numbers. 1D and 2D are written as 3D with leading spatial dimensions of
// size 1; channels count per group; dilation is the distance between taps (1 is dense). Pure
// functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_GEOMETRY_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_GEOMETRY_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::convolution {

using Spatial = std::array<int64_t, 3>;  // depth, height, width

struct Geometry {
  int64_t batch = 0, groups = 1;
  int64_t ic = 0, oc = 0;        // per group
  bool grouped_weights = false;  // weights have the rank of [G,O/G,I/G,...]
  Spatial in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  Spatial stride{1, 1, 1}, tap_step{1, 1, 1}, pad{0, 0, 0};  // pad: on the left

  bool IsDepthwise() const { return ic == 1 && oc == 1 && groups > 1; }
};

// `desc` has been validated.
Geometry GeometryOf(const ConvolutionDesc& desc);

// The strides of the spatial dimensions of `desc`, which start at dimension `first`; 0 for those it
// lacks.
Spatial SpatialStrides(const MemoryDesc& desc, int first);

// The taps k of 0..kernel-1 that read inside src for output `o` along dimension d: [begin, end).
TapRange ValidTaps(const Geometry& geometry, int d, int64_t o);

// Turns a 1x1 convolution with stride 1 over dense rows into one row of all pixels: to it the ends
// of rows do not matter. The strides of src and dst may be in any unit.
void FlattenPixels(Geometry* geometry, const Spatial& src_strides, const Spatial& dst_strides);

// Exchanges height and width where dst is high and narrow, so that its columns are the rows which
// tiles are cut from. Only if the window reaches along one of the two: the order of weights, and of
// what is added up, stays the same.
void TurnColumns(Geometry* geometry, Spatial* src_strides, Spatial* dst_strides);

// How many images are converted at once, for another row to convolve: the largest divisor of the
// batch whose images, of so many bytes each, stay in cache. They share the weights that are read.
int64_t ImagesAtOnce(int64_t batch, int64_t image_bytes);

//   kInvalidArgument  shapes, strides, dilations or paddings do not fit; the message names the
//                     dimension; output scales that do not fit dst
//   kUnimplemented    output scales or a pooling that no row takes; and as
//                     CheckWeightedGradients() says
absl::Status Validate(const ConvolutionDesc& desc, const Attributes& attributes);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_GEOMETRY_H_
