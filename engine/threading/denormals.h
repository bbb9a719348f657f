// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_THREADING_DENORMALS_H_
#define ENGINE_THREADING_DENORMALS_H_

#include <xmmintrin.h>

namespace tilewire::threading {

// Flushes denormals to zero (FTZ, DAZ) on this thread as long as it lives; then the thread's own
// state comes back.
class DenormalsFlushed {
 public:
  DenormalsFlushed() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFtz | kDaz); }
  ~DenormalsFlushed() { _mm_setcsr(saved_); }
  DenormalsFlushed(const DenormalsFlushed&) = delete;

 private:
  static constexpr unsigned kFtz = 0x8000;
  static constexpr unsigned kDaz = 0x0040;
  const unsigned saved_;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_DENORMALS_H_
