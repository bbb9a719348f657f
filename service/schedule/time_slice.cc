// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/time_slice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tilewire::service {
namespace {

constexpr uint64_t kShortSliceNs = 100'000;  // the least that Linux takes
constexpr uint64_t kOrdinarySlice = 0;       // the system's own

// As the kernel knows them (sched_setattr(2)): its header does not go together with glibc's.
struct Attributes {
  uint32_t size = 0, policy = 0;
  uint64_t flags = 0;
  int32_t niceness = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};

bool GetAttributes(Attributes* attributes) {
  *attributes = {};
  return syscall(SYS_sched_getattr, 0, attributes, sizeof(*attributes), 0) == 0;
}

// Policy and niceness stay what they are.
bool SetSlice(uint64_t nanoseconds) {
  Attributes attributes;
  if (!GetAttributes(&attributes)) return false;
  attributes.runtime = nanoseconds;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

// Earlier systems take the call and ignore the slice.
bool AskForShortSlices() { return SetSlice(kShortSliceNs) && SliceOfThisThread() == kShortSliceNs; }

void AskForOrdinarySlices() { SetSlice(kOrdinarySlice); }

uint64_t SliceOfThisThread() {
  Attributes now;
  return GetAttributes(&now) ? now.runtime : 0;
}

}  // namespace tilewire::service
