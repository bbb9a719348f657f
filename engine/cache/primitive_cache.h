// SPDX-License-Identifier: Apache-2.0
//
// Compiled primitives by descriptor. Sharded, bounded in bytes of code and tables; the least
// recently used go first. Concurrent requests for one key wait for one compile. A failed compile
// leaves nothing in the cache, and every request that waited gets its status. Eviction drops the
// cache's reference only: a primitive lives as long as any caller holds it. Thread-safe.
// Source: tests/engine/rows.txt C02, C03, C04.
#ifndef ENGINE_CACHE_PRIMITIVE_CACHE_H_
#define ENGINE_CACHE_PRIMITIVE_CACHE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/cache/cache_statistics.h"
#include "engine/primitives/primitives.h"

namespace tilewire {

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
  class Shard;
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace tilewire

#endif  // ENGINE_CACHE_PRIMITIVE_CACHE_H_
