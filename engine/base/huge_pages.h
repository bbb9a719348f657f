// SPDX-License-Identifier: Apache-2.0
//
// Large buffers that are read again and again: on pages of 2 MB where the system has some. Fewer
// page faults when they are filled, and a stream of reads is not stopped at every 4 KB.
#ifndef ENGINE_BASE_HUGE_PAGES_H_
#define ENGINE_BASE_HUGE_PAGES_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace tilewire {

// Asks for them in the whole pages that lie inside the bytes, before these are first touched; a
// system that refuses does no harm. Thread-safe.
inline void PreferHugePages(void* bytes, size_t size) {
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes) + kPage - 1) / kPage * kPage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(bytes) + size) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace tilewire

#endif  // ENGINE_BASE_HUGE_PAGES_H_
