// SPDX-License-Identifier: Apache-2.0
//
// The slices of time that the system gives a thread: since Linux 6.12 a thread may ask for shorter
// ones. It gets no more time for it, but gets it sooner: what wakes up with a short slice need not
// wait until a thread with a longer one has used that up.
#ifndef SERVICE_SCHEDULE_TIME_SLICE_H_
#define SERVICE_SCHEDULE_TIME_SLICE_H_

#include <cstdint>

namespace tilewire::service {

// For the calling thread and those that it makes later. False where the system has no such slices:
// before Linux 6.12, and in sandboxes that forbid the call.
bool AskForShortSlices();
void AskForOrdinarySlices();

// The calling thread's, in nanoseconds; 0 where the system does not tell.
uint64_t SliceOfThisThread();

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_TIME_SLICE_H_
