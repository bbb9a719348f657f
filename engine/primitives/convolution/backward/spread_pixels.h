// SPDX-License-Identifier: Apache-2.0
//
// Brings the gradient of those pixels of src that a convolution of one tap reads with a stride,
// computed without gaps between them, to their places: the others become zero, or stay as they are
// where the gradient is added to what src's holds. Both tensors have channels in blocks of `lanes`,
// 8 or 16. A large gradient is written past the caches.
//
// Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SPREAD_PIXELS_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SPREAD_PIXELS_H_

#include <cstdint>

#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Whether a convolution has one tap, a stride and no padding.
bool LeavesPixels(const Geometry& geometry);

class SpreadPixels {
 public:
  // `geometry`: of the convolution, one that LeavesPixels(). `bytes`: those of diff_src.
  SpreadPixels(const Geometry& geometry, int64_t lanes, const ActivationStrides& dense,
               const ActivationStrides& diff_src, bool adds, int64_t bytes)
      : geometry_(geometry),
        lanes_(lanes),
        dense_(dense),
        diff_src_(diff_src),
        adds_(adds),
        streams_(!adds && bytes > kLarge) {}

  // From and to the first elements.
  void Run(const float* dense, float* diff_src, const threading::Team& team) const;

 private:
  static constexpr int64_t kLarge = int64_t{8} << 20;  // bytes that no cache of a core holds

  void SpreadBlock(const float* dense, float* diff_src) const;
  void SpreadRow(const float* dense, float* diff_src) const;
  void AddRow(const float* dense, float* diff_src) const;

  Geometry geometry_;
  int64_t lanes_;
  ActivationStrides dense_, diff_src_;
  bool adds_, streams_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_SPREAD_PIXELS_H_
