// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/page_release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace tilewire::runtime {
namespace {

// Smaller buffers cost a call more than their pages are worth.
constexpr size_t kSmall = 64 << 10;

}  // namespace

void ReleasePages(const AlignedBuffer& buffer, absl::FunctionRef<void()> between) {
  if (buffer.size() < kSmall) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t address = reinterpret_cast<uintptr_t>(buffer.data());
  const uintptr_t end = (address + buffer.size()) / page * page;
  uintptr_t begin = (address + page - 1) / page * page;
  while (begin < end) {
    // To the next multiple, so that no large page is cut.
    const uintptr_t next = std::min(end, (begin / kReleasedPiece + 1) * kReleasedPiece);
    if (madvise(reinterpret_cast<void*>(begin), next - begin, MADV_DONTNEED) != 0) return;
    between();
    begin = next;
  }
}

}  // namespace tilewire::runtime
