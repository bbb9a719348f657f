// SPDX-License-Identifier: Apache-2.0
//
// Counts of a cache of primitives since it was made, and what it holds now.
#ifndef ENGINE_CACHE_CACHE_STATISTICS_H_
#define ENGINE_CACHE_CACHE_STATISTICS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace tilewire {

struct CacheStatistics {
  int64_t hits = 0, misses = 0, evictions = 0, failures = 0;
  int64_t entries = 0, bytes = 0, capacity_bytes = 0;
  absl::Duration compile_time;  // of all misses together
};

}  // namespace tilewire

#endif  // ENGINE_CACHE_CACHE_STATISTICS_H_
