// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_THREADING_PINNING_H_
#define ENGINE_THREADING_PINNING_H_

namespace tilewire::threading {

class Arena;

// Lets each of the arena's threads stay on a core of its own if there are as many of them as cores
// that the calling thread may use; otherwise nothing changes, and it returns false. It waits until
// they have begun; the arena should have nothing else to do.
//
// It is for threads that share their cores with others: the system may leave two of them on one
// core while another has nothing to do. Fewer threads than cores, as under a CPU quota, are better
// moved by the system.
bool PinThreads(Arena* arena);

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_PINNING_H_
