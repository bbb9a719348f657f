// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/primitive_cache.h"

#include <array>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/cache/primitive_shard.h"
#include "engine/primitives/verbose.h"

namespace tilewire {
namespace {

// Few, so that each shard's part of the bound still holds hundreds of primitives; creation is rare
// and lookups are short, so a lock is seldom waited for.
constexpr int kShardCount = 4;

}  // namespace

struct PrimitiveCache::Shards {
  explicit Shards(int64_t capacity_bytes) : capacity_bytes(capacity_bytes) {}

  const int64_t capacity_bytes;
  std::array<PrimitiveShard, kShardCount> shards;
};

PrimitiveCache::PrimitiveCache(int64_t capacity_bytes)
    : shards_(std::make_unique<Shards>(capacity_bytes)) {}

PrimitiveCache::~PrimitiveCache() = default;

absl::StatusOr<PrimitiveCache::Found> PrimitiveCache::GetOrCreate(const OpDesc& desc,
                                                                  const Attributes& attributes,
                                                                  const CreateOptions& options) {
  const std::string key = PrimitiveKey(desc, attributes, options);
  PrimitiveShard& shard = shards_->shards[absl::HashOf(key) % kShardCount];
  PrimitiveShard::Lookup lookup = shard.Find(key);
  absl::Duration compile_time;
  if (lookup.mine) {
    const absl::Time start = absl::Now();
    lookup.compilation->result = CreatePrimitive(desc, attributes, options);
    compile_time = absl::Now() - start;
    shard.Finish(key, lookup.compilation.get(), compile_time,
                 shards_->capacity_bytes / kShardCount);
  }
  if (lookup.compilation != nullptr) {
    lookup.compilation->done.WaitForNotification();
    const absl::Status& status = lookup.compilation->result.status();
    if (!status.ok() && VerboseLevel() >= 2) WriteFailedCreation(KindOf(desc), status);
    ABSL_RETURN_IF_ERROR(status);
    lookup.primitive = *lookup.compilation->result;
  }
  if (VerboseLevel() >= 2) {
    WriteCreationLines(lookup.primitive->info(), !lookup.mine, compile_time);
  }
  return Found{std::move(lookup.primitive), !lookup.mine, compile_time};
}

CacheStatistics PrimitiveCache::Statistics() const {
  CacheStatistics statistics;
  for (const PrimitiveShard& shard : shards_->shards) shard.AddTo(&statistics);
  statistics.capacity_bytes = shards_->capacity_bytes;
  return statistics;
}

}  // namespace tilewire
