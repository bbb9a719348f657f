// SPDX-License-Identifier: Apache-2.0
//
// How nice threads that make models ready are to requests. Compute threads run at a niceness of 10
// (service/engine_start.cc), which is about seven times the share of a core that a thread of the
// lowest priority gets beside them. SCHED_IDLE would leave requests still more, but a thread that
// gets no time keeps the locks that it holds.
#ifndef SERVICE_MODELS_NICENESS_H_
#define SERVICE_MODELS_NICENESS_H_

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tilewire::service {

inline constexpr int kNicenessOfStart = 10;  // nothing serves yet, but for other processes
inline constexpr int kLowestPriority = 19;

// Takes effect on the thread that calls it, and on those that it makes later.
inline void SetNiceness(int niceness) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), niceness);
}

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_NICENESS_H_
