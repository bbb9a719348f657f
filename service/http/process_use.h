// SPDX-License-Identifier: Apache-2.0
//
// The use that this process makes of the machine, as Linux counts it. Thread-safe.
#ifndef SERVICE_HTTP_PROCESS_USE_H_
#define SERVICE_HTTP_PROCESS_USE_H_

#include <cstdint>
#include <string>

namespace tilewire::service {

struct ProcessUse {
  double cpu_seconds = 0, start_seconds = 0;  // the latter since 1970
  int64_t resident_bytes = 0, virtual_bytes = 0;
  int64_t open_fds = 0, max_fds = 0;
  double throttled_seconds = 0;  // 0 where no control group bounds the CPU
};

// The files of Linux are read below `root`, as VisitControlGroups() does.
ProcessUse UseOfProcess(const std::string& root);

struct MachineMemory {
  int64_t total_bytes = 0, used_bytes = 0;  // the latter: what is not available
};
MachineMemory MemoryOfMachine(const std::string& root);

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_PROCESS_USE_H_
