// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_ADDRESS_SPACE_H_
#define SERVICE_ADDRESS_SPACE_H_

#include <cstdint>

namespace tilewire::service {

// Where RLIMIT_AS (ulimit -v) bounds what this process maps, it maps less from now on: one heap for
// all threads instead of one for each, which takes 64 MB of addresses, and stacks of 1 MB instead
// of 8. What unwinds stacks is loaded at once; later there may be no addresses left for it.
// To be called before any thread starts.
void SpareAddresses();

// From now on, threads share this many heaps, where glibc would make eight for each core: memory
// that is freed in one stays with it, so that each may keep the peak of its own threads. It changes
// nothing where SpareAddresses() left one, or where glibc would make fewer.
// To be called before threads start, which keep the heap that they have.
void BoundHeaps(int heaps);

// The stack of a thread that is started without asking for a size.
int64_t StackBytes();

}  // namespace tilewire::service

#endif  // SERVICE_ADDRESS_SPACE_H_
