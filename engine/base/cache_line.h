// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_BASE_CACHE_LINE_H_
#define ENGINE_BASE_CACHE_LINE_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace tilewire {

inline constexpr int kLineBytes = 64;  // of every x86-64 cache

inline bool BeginsLine(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kLineBytes == 0;
}

// Whether vectors of `bytes` are aligned at all steps by these strides, in floats, from an aligned
// one on. Stores past the caches fault where they are not, and strides are a client's to choose.
inline bool KeepAligned(std::initializer_list<int64_t> strides, int64_t bytes) {
  return std::all_of(strides.begin(), strides.end(), [&](int64_t stride) {
    return stride * static_cast<int64_t>(sizeof(float)) % bytes == 0;
  });
}

}  // namespace tilewire

#endif  // ENGINE_BASE_CACHE_LINE_H_
