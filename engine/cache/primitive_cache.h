// SPDX-License-Identifier: Apache-2.0
//
// Compiled primitives by descriptor. Sharded, least recently used, bounded in bytes of code and tables. Concurrent
// requests for one key wait for one compile; a failed compile leaves nothing behind and its status goes to all who
// waited. Eviction drops the cache's reference only: code that runs lives as long as somebody holds it. Thread-safe.
// Source: DESIGN.md; ROWS.md C02-C04.
#ifndef ENGINE_CACHE_PRIMITIVE_CACHE_H_
#define ENGINE_CACHE_PRIMITIVE_CACHE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/primitives/primitives.h"

namespace tilewire {

struct CacheStatistics {
  int64_t hits = 0, misses = 0, evictions = 0, failures = 0;
  int64_t entries = 0, bytes = 0, capacity_bytes = 0;
  absl::Duration compile_time;  // of all misses together
};

class PrimitiveCache {
 public:
  explicit PrimitiveCache(int64_t capacity_bytes);
  ~PrimitiveCache();

  struct Found {
    std::shared_ptr<const Primitive> primitive;
    bool hit = false;
    absl::Duration compile_time;  // zero on a hit
  };
  // Errors are those of CreatePrimitive().
  absl::StatusOr<Found> GetOrCreate(const OpDesc& desc, const Attributes& attributes,
                                    const CreateOptions& options);

  CacheStatistics Statistics() const;

 private:
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace tilewire

#endif  // ENGINE_CACHE_PRIMITIVE_CACHE_H_
