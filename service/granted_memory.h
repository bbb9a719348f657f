// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process may use, and which limit says so. Thread-safe.
#ifndef SERVICE_GRANTED_MEMORY_H_
#define SERVICE_GRANTED_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tilewire::service {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string name;     // for people: "memory.max of the control group '/a'"
  bool mapped = false;  // it counts what is mapped (RLIMIT_AS), not what is resident
};

// The limits that bind: of what is resident, the tightest of the machine's memory and of the
// process's control groups, versions 1 and 2, up to the root; and RLIMIT_AS if it is set. A group's
// memory.high counts too: beyond it the system slows the process down until it stands still. The
// files of Linux are read below `root`, as VisitControlGroups() does.
std::vector<MemoryLimit> MemoryLimits(const std::string& root);

// The memory that this process holds now.
struct MemoryUse {
  int64_t resident = 0, mapped = 0;
};
MemoryUse UsedMemory();

}  // namespace tilewire::service

#endif  // SERVICE_GRANTED_MEMORY_H_
