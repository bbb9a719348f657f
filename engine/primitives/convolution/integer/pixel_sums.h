// SPDX-License-Identifier: Apache-2.0
//
// The share of the weights' zero point q in the sums of an integer convolution without padding:
// from each pixel of each group of dst
//
//   q * sum over the window and the group's channels of (src - p)
//
// where p is src's zero point. The channels of each pixel of src are summed first, and these sums
// over the window. Immutable.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_PIXEL_SUMS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_PIXEL_SUMS_H_

#include <cstdint>

#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/integer/integer_driver.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class PixelSums {
 public:
  // `channels` of a group of a pixel lie side by side in the u8 src of the problem.
  PixelSums(const IntegerProblem& problem, int64_t channels)
      : geometry_(problem.geometry), src_(problem.src), channels_(channels) {}

  int64_t Results() const;       // numbers of one image
  int64_t ScratchBytes() const;  // for Run()
  // Writes what is added to the sums of one image.
  void Run(const std::byte* image, int32_t zero_point, int32_t weights_zero_point,
           std::byte* scratch, int32_t* to, const threading::Team& team) const;

 private:
  // Whether a window is one pixel of src, and dst has them all.
  bool IsPointwise() const;
  // The sums of the channels of a row of a group of src.
  void SumChannels(const std::byte* image, int64_t row, int32_t* to) const;
  // The sums of the windows of a row of a group of dst.
  void SumWindows(const int32_t* channels, int64_t row, int32_t* to) const;

  const Geometry geometry_;
  const ByteStrides src_;
  const int64_t channels_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_PIXEL_SUMS_H_
