// SPDX-License-Identifier: Apache-2.0
//
// Computes each key's value once and shares it. Concurrent callers of one key wait for the first;
// other keys are unaffected. A failure is not kept. The number of values and their bytes are
// bounded, and the least recently used go first; a value lives as long as any caller holds it.
// A value that exists is found under a shared lock. Thread-safe.
#ifndef ENGINE_THREADING_SINGLE_FLIGHT_CACHE_H_
#define ENGINE_THREADING_SINGLE_FLIGHT_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/threading/mutex.h"

namespace tilewire::threading {

template <typename T, typename Key = std::string>
class SingleFlightCache {
 public:
  using Value = std::shared_ptr<const T>;

  // The newest value stays even if it alone exceeds `bytes`.
  struct Bound {
    size_t values = std::numeric_limits<size_t>::max();
    int64_t bytes = std::numeric_limits<int64_t>::max();
    int64_t (*bytes_of)(const T&) = [](const T&) { return int64_t{0}; };
  };

  SingleFlightCache() = default;
  explicit SingleFlightCache(const Bound& bound) : bound_(bound) {}

  // Errors are those of `make`.
  absl::StatusOr<Value> GetOrMake(const Key& key, absl::FunctionRef<absl::StatusOr<Value>()> make) {
    std::shared_ptr<Entry> entry = Find(key);
    if (entry == nullptr) {
      bool mine = false;
      entry = FindOrInsert(key, &mine);
      if (mine) return Make(key, *entry, make);
    }
    entry->done.WaitForNotification();
    return entry->value;
  }

  // The value, or null until it has been made. Does not wait or count as a use.
  Value Peek(const Key& key) const ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::ReaderMutexLock lock(&mutex_);
    const auto it = entries_.find(key);
    return it != entries_.end() && it->second->IsMade() ? *it->second->value : nullptr;
  }

  // The keys of the values that have been made, the last used first. Does not count as a use.
  std::vector<Key> Keys() const ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::pair<int64_t, Key>> used;
    {
      threading::ReaderMutexLock lock(&mutex_);
      for (const auto& [key, entry] : entries_) {
        if (entry->IsMade()) used.emplace_back(entry->last_use.load(), key);
      }
    }
    std::sort(used.begin(), used.end(),
              [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Key> keys;
    for (auto& [last_use, key] : used) keys.push_back(std::move(key));
    return keys;
  }

  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::ReaderMutexLock lock(&mutex_);
    return entries_.size();
  }
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::ReaderMutexLock lock(&mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    threading::Notification done;
    absl::StatusOr<Value> value =
        absl::UnknownError("not made");  // written before `done`, read after it
    std::atomic<int64_t> last_use = 0;
    int64_t bytes = 0;  // guarded by mutex_; 0 until the value is made

    bool IsMade() const { return done.HasBeenNotified() && value.ok(); }
  };

  std::shared_ptr<Entry> Find(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::ReaderMutexLock lock(&mutex_);
    const auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    it->second->last_use.store(clock_.fetch_add(1, std::memory_order_relaxed),
                               std::memory_order_relaxed);
    return it->second;
  }

  std::shared_ptr<Entry> FindOrInsert(const Key& key, bool* mine) ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::MutexLock lock(&mutex_);
    auto [it, inserted] = entries_.try_emplace(key);
    if (inserted) it->second = std::make_shared<Entry>();
    std::shared_ptr<Entry> entry = it->second;
    entry->last_use.store(clock_.fetch_add(1, std::memory_order_relaxed),
                          std::memory_order_relaxed);
    if (inserted && entries_.size() > bound_.values) EvictOldest();
    *mine = inserted;
    return entry;
  }

  // May evict an entry that is still being made: its waiters hold it.
  void EvictOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    auto oldest = entries_.begin();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second->last_use.load() < oldest->second->last_use.load()) oldest = it;
    }
    bytes_ -= oldest->second->bytes;
    entries_.erase(oldest);
  }

  void Count(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    entry.bytes = bound_.bytes_of(**entry.value);
    bytes_ += entry.bytes;
    entry.last_use.store(clock_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    while (bytes_ > bound_.bytes && entries_.size() > 1) EvictOldest();
  }

  absl::StatusOr<Value> Make(const Key& key, Entry& entry,
                             absl::FunctionRef<absl::StatusOr<Value>()> make)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    entry.value = make();
    {
      threading::MutexLock lock(&mutex_);
      const auto it = entries_.find(key);
      if (it != entries_.end() && it->second.get() == &entry) {
        if (entry.value.ok()) {
          Count(entry);
        } else {
          entries_.erase(it);
        }
      }
    }
    entry.done.Notify();
    return entry.value;
  }

  const Bound bound_;
  mutable threading::Mutex mutex_;
  std::atomic<int64_t> clock_ = 0;
  absl::flat_hash_map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_SINGLE_FLIGHT_CACHE_H_
