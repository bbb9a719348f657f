// SPDX-License-Identifier: Apache-2.0
//
// How images are cut into bands of rows (of pixels, where rows are long), whose part of src and
// diff_dst stays in the first cache while taps and channels pass. Bands depend on the descriptor of
// one image and on the vector unit alone, and are numbered through all images.
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_BANDS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_BANDS_H_

#include <cstdint>

#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/backward/weights_gradient_problem.h"

namespace tilewire::convolution {

class WeightsGradientBands {
 public:
  // Elements of src and of diff_dst.
  struct Distance {
    int64_t src = 0, dst = 0;
  };
  // Rows and pixels of one depth of diff_dst.
  struct Band {
    int64_t image, depth;
    TapRange rows, pixels;
  };

  // Tiles have at most `blocks` of output channels.
  WeightsGradientBands(const WeightsGradientProblem& problem, int blocks);

  int64_t OfImage() const;  // how many
  Band At(int64_t index) const;
  // From band `index` to the one after it, about: padding is left out.
  Distance ToNext(int64_t index) const;
  // Blocks of src whose bands stay in the second cache.
  int64_t BlocksInCache() const { return blocks_in_cache_; }

 private:
  Distance BeginOf(const Band& band) const;

  Geometry geometry_;
  ActivationStrides src_, dst_;
  int64_t rows_ = 1, pixels_ = 1;  // of a band, at most
  int64_t blocks_in_cache_ = 1;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_BANDS_H_
