// SPDX-License-Identifier: Apache-2.0
//
// What a thread that computes asks of the operating system.
#ifndef ENGINE_THREADING_COMPUTE_THREAD_H_
#define ENGINE_THREADING_COMPUTE_THREAD_H_

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tilewire::threading {

// Names the calling thread, and asks for long slices of CPU time. Its share of the CPU stays the
// same, but a thread with shorter slices that wakes up, such as one that receives or answers a
// short request, interrupts it at once instead of waiting until the slice ends. Linux before 6.12
// has no slices of a thread's own and ignores the wish, as does a sandbox that forbids the call.
inline void BecomeComputeThread() {
  constexpr uint64_t kSliceNs = 20'000'000;
  pthread_setname_np(pthread_self(), "tw-compute");
  // The kernel's struct sched_attr in its first version, which glibc 2.36 does not declare.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {};
  attributes.size = sizeof(attributes);
  attributes.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
  attributes.runtime = kSliceNs;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_COMPUTE_THREAD_H_
