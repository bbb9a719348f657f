// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/primitive_shard.h"

#include <utility>

#include "engine/base/checked_math.h"

namespace tilewire {
namespace {

// Generated code is mapped by pages.
constexpr int64_t kPageBytes = 4096;
// The primitive object, its descriptors, the list node, the map slot and the kernel's record of a
// mapping, roughly; it also keeps the number of mappings well under the system's limit (65,530)
// with the default capacity.
constexpr int64_t kEntryOverheadBytes = 4096;

}  // namespace

PrimitiveShard::Lookup PrimitiveShard::Find(const std::string& key) {
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

void PrimitiveShard::Finish(const std::string& key, Compilation* compilation,
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

void PrimitiveShard::AddTo(CacheStatistics* sum) const {
  threading::MutexLock lock(&mutex_);
  sum->hits += statistics_.hits;
  sum->misses += statistics_.misses;
  sum->evictions += statistics_.evictions;
  sum->failures += statistics_.failures;
  sum->entries += static_cast<int64_t>(entries_.size());
  sum->bytes += statistics_.bytes;
  sum->compile_time += statistics_.compile_time;
}

void PrimitiveShard::Insert(const std::string& key, const PrimitivePointer& primitive) {
  const int64_t bytes = RoundUp(primitive->info().code_bytes, kPageBytes) +
                        static_cast<int64_t>(key.size()) + kEntryOverheadBytes;
  recent_.push_front({key, primitive, bytes});
  entries_.emplace(recent_.front().key, recent_.begin());
  statistics_.bytes += bytes;
}

void PrimitiveShard::Evict(int64_t capacity_bytes, std::vector<PrimitivePointer>* evicted) {
  while (statistics_.bytes > capacity_bytes) {
    Entry& oldest = recent_.back();
    statistics_.bytes -= oldest.bytes;
    ++statistics_.evictions;
    evicted->push_back(std::move(oldest.primitive));
    entries_.erase(oldest.key);
    recent_.pop_back();
  }
}

}  // namespace tilewire
