// SPDX-License-Identifier: Apache-2.0
//
// The primitives that clients have described, by id. An id is a fingerprint of the canonical key,
// so it outlives the compiled code: a primitive that the cache evicted is compiled again. Bounded
// in bytes; the descriptions that were not asked for the longest are forgotten. Thread-safe.
#ifndef SERVICE_RPC_PRIMITIVE_CATALOG_H_
#define SERVICE_RPC_PRIMITIVE_CATALOG_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/primitive_engine.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {

struct DescribedPrimitive {
  std::string id;   // 32 hexadecimal digits
  std::string key;  // PrimitiveKey()
  OpDesc operation;
  Attributes attributes;
};

class PrimitiveCatalog {
 public:
  // `max_isa` is part of the key.
  PrimitiveCatalog(cpu::Isa max_isa, int64_t capacity_bytes)
      : max_isa_(max_isa), capacity_bytes_(capacity_bytes) {}

  // The description with its id; not yet known under it.
  std::shared_ptr<const DescribedPrimitive> Describe(OpDesc operation, Attributes attributes) const;

  // kInternal  another description has the same fingerprint
  absl::Status Remember(std::shared_ptr<const DescribedPrimitive> described)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // kNotFound
  absl::StatusOr<std::shared_ptr<const DescribedPrimitive>> Find(const std::string& id)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Recent = std::list<std::shared_ptr<const DescribedPrimitive>>;  // latest first

  const cpu::Isa max_isa_;
  const int64_t capacity_bytes_;
  threading::Mutex mutex_;
  Recent recent_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Recent::iterator> by_id_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PRIMITIVE_CATALOG_H_
