// SPDX-License-Identifier: Apache-2.0
//
// Where a convolution's weights are that it will read next, so that the second cache can be asked
// for them while others are computed with: one stretch for each output block of a group, of equal
// size and at equal distances, in bytes. A sweep goes through one stretch after the other, and then
// stays with weights that are near. Thread-compatible.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WEIGHTS_AHEAD_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WEIGHTS_AHEAD_H_

#include <cstddef>
#include <cstdint>

namespace tilewire::convolution {

class WeightsAhead {
 public:
  // None.
  WeightsAhead() = default;
  // `skipped`: of the first stretch, which others ask for.
  WeightsAhead(const std::byte* weights, int64_t stretch, int64_t distance, int64_t stretches,
               int64_t skipped)
      : begin_(weights + skipped),
        end_(weights + stretch),
        stretch_(stretch),
        distance_(distance),
        left_(stretches) {}

  const void* begin() const { return begin_; }

  // Where to go on: `reached` is how far has been asked for, from begin() on, maybe a little beyond
  // a stretch.
  const void* Next(const void* reached, const void* near) {
    if (left_ > 0 && reached >= end_) {
      reached = static_cast<const std::byte*>(reached) + (distance_ - stretch_);
      end_ += distance_;
      --left_;
    }
    return left_ > 0 ? reached : near;
  }

 private:
  const std::byte* begin_ = nullptr;
  const std::byte* end_ = nullptr;  // of the current stretch
  int64_t stretch_ = 0, distance_ = 0, left_ = 0;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WEIGHTS_AHEAD_H_
