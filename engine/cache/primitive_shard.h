// SPDX-License-Identifier: Apache-2.0
//
// A part of the cache under one lock: the primitives whose keys hash to it.
#ifndef ENGINE_CACHE_PRIMITIVE_SHARD_H_
#define ENGINE_CACHE_PRIMITIVE_SHARD_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/cache/cache_statistics.h"
#include "engine/primitives/primitive.h"
#include "engine/threading/mutex.h"

namespace tilewire {

// The entries of the keys that hash to it, most recently used first. Thread-safe.
class PrimitiveShard {
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

}  // namespace tilewire

#endif  // ENGINE_CACHE_PRIMITIVE_SHARD_H_
