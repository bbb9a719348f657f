// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_BASE_CACHE_LINE_H_
#define ENGINE_BASE_CACHE_LINE_H_

#include <cstdint>

namespace tilewire {

inline constexpr int kLineBytes = 64;  // of every x86-64 cache

inline bool BeginsLine(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kLineBytes == 0;
}

}  // namespace tilewire

#endif  // ENGINE_BASE_CACHE_LINE_H_
