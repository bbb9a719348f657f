// SPDX-License-Identifier: Apache-2.0
//
// How nice threads that make models ready are to requests: compute threads have the server's own
// niceness (service/engine_start.h) and get about seven times their share of a core. SCHED_IDLE
// would leave requests still more, but a thread that gets no time keeps the locks that it holds.
#ifndef SERVICE_MODELS_NICENESS_H_
#define SERVICE_MODELS_NICENESS_H_

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "service/schedule/time_slice.h"

namespace tilewire::service {

inline constexpr int kNicenessToRequests = 9;

// For the calling thread and those that it makes later: nicer to the requests of the process
// `server`.
inline void LowerPriorityOfThisThread(pid_t server) {
  const int niceness = getpriority(PRIO_PROCESS, static_cast<id_t>(server)) + kNicenessToRequests;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), niceness);
  AskForOrdinarySlices();
}

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_NICENESS_H_
