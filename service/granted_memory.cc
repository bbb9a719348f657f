// SPDX-License-Identifier: Apache-2.0
#include "service/granted_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/control_groups.h"

namespace tilewire::service {
namespace {

// Files that hold a number of bytes, or "max".
constexpr const char* kLimitsOfV1[] = {"memory.limit_in_bytes"};
constexpr const char* kLimitsOfV2[] = {"memory.max", "memory.high"};

void Tighten(const ControlGroup& group, MemoryLimit* limit) {
  using Names = absl::Span<const char* const>;
  for (const char* file : group.version == 1 ? Names(kLimitsOfV1) : Names(kLimitsOfV2)) {
    int64_t bytes = 0;
    if (!(std::ifstream(absl::StrCat(group.folder, "/", file)) >> bytes)) continue;
    if (bytes <= 0 || bytes >= limit->bytes) continue;
    *limit = {bytes, absl::StrCat(file, " of the control group '", group.name, "'")};
  }
}

}  // namespace

std::vector<MemoryLimit> MemoryLimits(const std::string& root) {
  MemoryLimit resident = {int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE),
                          "the machine's memory"};
  VisitControlGroups(root, "memory",
                     [&resident](const ControlGroup& group) { Tighten(group, &resident); });
  std::vector<MemoryLimit> limits = {resident};
  rlimit own;
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY) {
    limits.push_back({static_cast<int64_t>(own.rlim_cur), "RLIMIT_AS (ulimit -v)", true});
  }
  return limits;
}

// Two numbers of pages: mapped, resident.
MemoryUse UsedMemory() {
  MemoryUse use;
  std::ifstream("/proc/self/statm") >> use.mapped >> use.resident;
  const int64_t page = sysconf(_SC_PAGE_SIZE);
  return {use.resident * page, use.mapped * page};
}

}  // namespace tilewire::service
