// SPDX-License-Identifier: Apache-2.0
#include "service/granted_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace tilewire::service {

int64_t GrantedMemory() {
  int64_t granted = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  // Of control groups in version 2 and 1; "max" is not a number and leaves the machine's.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) granted = std::min(granted, limit);
  }
  rlimit own;
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
    granted = std::min(granted, static_cast<int64_t>(own.rlim_cur));
  return granted;
}

}  // namespace tilewire::service
