// SPDX-License-Identifier: Apache-2.0
//
// The use that this process makes of the machine, as Linux counts it. Thread-safe.
#ifndef SERVICE_HTTP_PROCESS_USE_H_
#define SERVICE_HTTP_PROCESS_USE_H_

#include <cstdint>
#include <string>
#include <utility>

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

// The share of the machine's CPU time that was not idle, as Triton tells it: idle is also who waits
// for a disk; work is also what a hypervisor takes. Thread-compatible.
class MachineCpu {
 public:
  explicit MachineCpu(std::string root) : root_(std::move(root)) { ShareSinceLast(); }

  // Since the last call, or since it was made; 0 where nothing has passed, or /proc tells nothing.
  double ShareSinceLast();

 private:
  const std::string root_;
  double busy_ = 0, idle_ = 0;  // clock ticks at the last call
};

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_PROCESS_USE_H_
