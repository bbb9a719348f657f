// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/counted_malloc.h"

#include <cerrno>
#include <cstddef>

// The functions that the C library's own entry points call; operator new calls malloc().
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* bytes, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace tilewire::bench {
namespace {

std::atomic<AllocationCounts*> counted{nullptr};

void Count(size_t size) {
  AllocationCounts* counts = counted.load(std::memory_order_relaxed);
  if (counts == nullptr) return;
  counts->all.fetch_add(1, std::memory_order_relaxed);
  if (size >= AllocationCounts::kLargeBytes) counts->large.fetch_add(1, std::memory_order_relaxed);
}

void* Aligned(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}

}  // namespace

void CountAllocations(AllocationCounts* counts) { counted.store(counts); }

}  // namespace tilewire::bench

extern "C" {

void* malloc(size_t size) {
  tilewire::bench::Count(size);
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  tilewire::bench::Count(count * size);
  return __libc_calloc(count, size);
}

void* realloc(void* bytes, size_t size) {
  tilewire::bench::Count(size);
  return __libc_realloc(bytes, size);
}

void* memalign(size_t alignment, size_t size) { return tilewire::bench::Aligned(alignment, size); }

void* aligned_alloc(size_t alignment, size_t size) {
  return tilewire::bench::Aligned(alignment, size);
}

int posix_memalign(void** bytes, size_t alignment, size_t size) {
  *bytes = tilewire::bench::Aligned(alignment, size);
  return *bytes == nullptr ? ENOMEM : 0;
}

}  // extern "C"
