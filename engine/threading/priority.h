// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_THREADING_PRIORITY_H_
#define ENGINE_THREADING_PRIORITY_H_

#include <sys/resource.h>

namespace tilewire::threading {

// Whether the calling thread's priority was lower than the ordinary one when it first asked.
inline bool HasLowPriority() {
  thread_local const bool is_low = getpriority(PRIO_PROCESS, 0) > 0;
  return is_low;
}

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_PRIORITY_H_
