// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_BASE_CACHE_LINE_H_
#define ENGINE_BASE_CACHE_LINE_H_

namespace tilewire {

inline constexpr int kLineBytes = 64;  // of every x86-64 cache

}  // namespace tilewire

#endif  // ENGINE_BASE_CACHE_LINE_H_
