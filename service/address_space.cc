// SPDX-License-Identifier: Apache-2.0
#include "service/address_space.h"

#include <execinfo.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tilewire::service {
namespace {

constexpr size_t kStackBytes = 1 << 20;
constexpr int kHeapsPerCore = 8;  // glibc's

bool AddressesAreBounded() {
  rlimit limit;
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

void SpareAddresses() {
  if (!AddressesAreBounded()) return;
  void* frame = nullptr;
  backtrace(&frame, 1);  // glibc loads libgcc_s the first time that it needs it
  mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes) != 0) return;
  size_t bytes = 0;
  pthread_attr_getstacksize(&attributes, &bytes);
  if (bytes > kStackBytes && pthread_attr_setstacksize(&attributes, kStackBytes) == 0)
    pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

void BoundHeaps(int heaps) {
  const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (AddressesAreBounded() || heaps >= kHeapsPerCore * cores) return;
  mallopt(M_ARENA_MAX, heaps);
}

int64_t StackBytes() {
  pthread_attr_t attributes;
  if (pthread_getattr_default_np(&attributes) != 0) return kStackBytes;
  size_t bytes = kStackBytes;
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return static_cast<int64_t>(bytes);
}

}  // namespace tilewire::service
