// SPDX-License-Identifier: Apache-2.0
//
// How nice threads and processes that make models ready are to requests. Compute threads run at a
// niceness of 10 (service/engine_start.cc), which is about seven times the share of a core that a
// thread of the lowest priority gets beside them. SCHED_IDLE leaves requests still more, and gives
// them the core at once where the lowest priority may keep it for the rest of its slice; but a
// thread that gets no time keeps the locks that it holds, and none returns from it without rights.
#ifndef SERVICE_MODELS_NICENESS_H_
#define SERVICE_MODELS_NICENESS_H_

#include <sched.h>
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

// The same: from now on they run where a core has nothing else to do, and otherwise a few
// hundredths of the time. For what holds no lock that a request may wait for. Where the system
// refuses it, they keep their niceness.
inline void RunOnIdleCores() {
  const sched_param none = {};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_NICENESS_H_
