// SPDX-License-Identifier: Apache-2.0
//
// How often a generated loop runs that asks for another turn only after one: for a count of 0 it
// would write 2^64 times. So the arguments of generated code hold this instead of a number. A count
// below 1 is a programmer's error (engine/base/check.h).
#ifndef ENGINE_JIT_LOOP_COUNT_H_
#define ENGINE_JIT_LOOP_COUNT_H_

#include <cstdint>
#include <type_traits>

#include "engine/base/check.h"

namespace tilewire::jit {

class LoopCount {
 public:
  LoopCount() = default;
  LoopCount(int64_t turns) : turns_(turns) {  // NOLINT: code reads it as the number that it is
    TILEWIRE_CHECK(turns >= 1, "a generated loop takes one turn at least");
  }
  operator int64_t() const { return turns_; }  // NOLINT: as above

 private:
  int64_t turns_ = 1;
};
static_assert(sizeof(LoopCount) == sizeof(int64_t) && std::is_standard_layout_v<LoopCount> &&
              std::is_trivially_copyable_v<LoopCount>);

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_LOOP_COUNT_H_
