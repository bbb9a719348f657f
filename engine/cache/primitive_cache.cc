// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/primitive_cache.h"

#include <array>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/verbose.h"
#include "engine/threading/mutex.h"

namespace tilewire {
namespace {

// Few, so that each shard's part of the bound still holds hundreds of primitives; creation is rare
// and lookups are short, so a lock is seldom waited for.
constexpr int kShardCount = 4;

// Generated code is mapped by pages.
constexpr int64_t kPageBytes = 4096;
// The primitive object, its descriptors, the list node, the map slot and the kernel's record of a
// mapping, roughly; it also keeps the number of mappings well under the system's limit (65,530)
// with the default capacity.
constexpr int64_t kEntryOverheadBytes = 4096;

}  // namespace

// A part of the cache under one lock: the entries of the keys that hash to it, most recently used
// first. Thread-safe.
class PrimitiveCache::Shard {
 public:
  using PrimitivePointer = std::shared_ptr<const Primitive>;

  // A key whose primitive one thread is compiling, while others may wait for `done`.
  struct Compilation {
    threading::Notification done;
    absl::StatusOr<PrimitivePointer> result = absl::UnknownError("not compiled yet");
  };

  // The result of a lookup: the primitive; or a compilation, and whether it is the caller's to do.
  struct Lookup {
    PrimitivePointer primitive;
    std::shared_ptr<Compilation> compilation;
    bool mine = false;
  };

  Lookup Find(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the compilation of `key`: keeps what succeeded, as long as all entries take at most
  // `capacity_bytes`, forgets what failed, wakes its waiters.
  void Finish(const std::string& key, Compilation* compilation, absl::Duration compile_time,
              int64_t capacity_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddTo(CacheStatistics* sum) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string key;
    PrimitivePointer primitive;
    int64_t bytes = 0;
  };

  void Insert(const std::string& key, const PrimitivePointer& primitive)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Evicted primitives go to `evicted`, whose owner destroys them without the lock.
  void Evict(int64_t capacity_bytes, std::vector<PrimitivePointer>* evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable threading::Mutex mutex_;
  std::list<Entry> recent_ ABSL_GUARDED_BY(mutex_);
  // Keys point into recent_.
  absl::flat_hash_map<absl::string_view, std::list<Entry>::iterator> entries_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<Compilation>> compilations_
      ABSL_GUARDED_BY(mutex_);
  CacheStatistics statistics_ ABSL_GUARDED_BY(mutex_);
};

PrimitiveCache::Shard::Lookup PrimitiveCache::Shard::Find(const std::string& key) {
  threading::MutexLock lock(&mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ++statistics_.hits;
    recent_.splice(recent_.begin(), recent_, found->second);
    return {.primitive = found->second->primitive};
  }
  auto [running, mine] = compilations_.try_emplace(key);
  if (mine) running->second = std::make_shared<Compilation>();
  ++(mine ? statistics_.misses : statistics_.hits);
  return {.compilation = running->second, .mine = mine};
}

void PrimitiveCache::Shard::Finish(const std::string& key, Compilation* compilation,
                                   absl::Duration compile_time, int64_t capacity_bytes) {
  // Destroyed after the lock is released: unmapping code takes time.
  std::vector<PrimitivePointer> evicted;
  {
    threading::MutexLock lock(&mutex_);
    compilations_.erase(key);
    statistics_.compile_time += compile_time;
    if (compilation->result.ok()) {
      Insert(key, *compilation->result);
      Evict(capacity_bytes, &evicted);
    } else {
      ++statistics_.failures;
    }
  }
  compilation->done.Notify();
}

void PrimitiveCache::Shard::AddTo(CacheStatistics* sum) const {
  threading::MutexLock lock(&mutex_);
  sum->hits += statistics_.hits;
  sum->misses += statistics_.misses;
  sum->evictions += statistics_.evictions;
  sum->failures += statistics_.failures;
  sum->entries += static_cast<int64_t>(entries_.size());
  sum->bytes += statistics_.bytes;
  sum->compile_time += statistics_.compile_time;
}

void PrimitiveCache::Shard::Insert(const std::string& key, const PrimitivePointer& primitive) {
  const int64_t bytes = RoundUp(primitive->info().code_bytes, kPageBytes) +
                        static_cast<int64_t>(key.size()) + kEntryOverheadBytes;
  recent_.push_front({key, primitive, bytes});
  entries_.emplace(recent_.front().key, recent_.begin());
  statistics_.bytes += bytes;
}

void PrimitiveCache::Shard::Evict(int64_t capacity_bytes, std::vector<PrimitivePointer>* evicted) {
  while (statistics_.bytes > capacity_bytes) {
    Entry& oldest = recent_.back();
    statistics_.bytes -= oldest.bytes;
    ++statistics_.evictions;
    evicted->push_back(std::move(oldest.primitive));
    entries_.erase(oldest.key);
    recent_.pop_back();
  }
}

struct PrimitiveCache::Shards {
  explicit Shards(int64_t capacity_bytes) : capacity_bytes(capacity_bytes) {}

  const int64_t capacity_bytes;
  std::array<Shard, kShardCount> shards;
};

PrimitiveCache::PrimitiveCache(int64_t capacity_bytes)
    : shards_(std::make_unique<Shards>(capacity_bytes)) {}

PrimitiveCache::~PrimitiveCache() = default;

absl::StatusOr<PrimitiveCache::Found> PrimitiveCache::GetOrCreate(const OpDesc& desc,
                                                                  const Attributes& attributes,
                                                                  const CreateOptions& options) {
  const std::string key = PrimitiveKey(desc, attributes, options);
  Shard& shard = shards_->shards[absl::HashOf(key) % kShardCount];
  Shard::Lookup lookup = shard.Find(key);
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
  for (const Shard& shard : shards_->shards) shard.AddTo(&statistics);
  statistics.capacity_bytes = shards_->capacity_bytes;
  return statistics;
}

}  // namespace tilewire
