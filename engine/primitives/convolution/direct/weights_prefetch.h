// SPDX-License-Identifier: Apache-2.0
//
// The weights that a convolution will read next, so that they can be prefetched into the second
// cache while it computes with others. They are one stretch of bytes per output block of a group,
// of equal sizes and at equal distances. A sweep goes through one stretch after the other, and then
// stays with weights that are near. Thread-compatible.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WEIGHTS_PREFETCH_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WEIGHTS_PREFETCH_H_

#include <cstddef>
#include <cstdint>

namespace tilewire::convolution {

class WeightsPrefetch {
 public:
  // None.
  WeightsPrefetch() = default;
  // `skipped`: bytes of the first stretch that other pieces of work prefetch.
  WeightsPrefetch(const std::byte* weights, int64_t stretch, int64_t distance, int64_t stretches,
                  int64_t skipped)
      : begin_(weights + skipped),
        end_(weights + stretch),
        stretch_(stretch),
        distance_(distance),
        left_(stretches) {}

  const void* begin() const { return begin_; }

  // Where to go on, when everything from begin() to `reached` has been prefetched, which may be a
  // little more than a stretch.
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

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WEIGHTS_PREFETCH_H_
