// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/primitive_catalog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

// FNV-1a with 128 bits: the same on every machine and in every release of the standard library.
std::string Fingerprint(const std::string& key) {
  using Wide = unsigned __int128;
  const Wide prime = (Wide{1} << 88) + 0x13B;
  Wide hash = (Wide{0x6C62272E07BB0142} << 64) + 0x62B821756295C58D;
  for (unsigned char byte : key) hash = (hash ^ byte) * prime;
  return absl::StrCat(absl::Hex(static_cast<uint64_t>(hash >> 64), absl::kZeroPad16),
                      absl::Hex(static_cast<uint64_t>(hash), absl::kZeroPad16));
}

// About what an entry occupies: a descriptor in memory is larger than its key.
int64_t Weight(const DescribedPrimitive& described) { return 8 * described.key.size() + 4096; }

}  // namespace

std::shared_ptr<const DescribedPrimitive> PrimitiveCatalog::Describe(OpDesc operation,
                                                                     Attributes attributes) const {
  CreateOptions options;
  options.max_isa = max_isa_;
  auto described = std::make_shared<DescribedPrimitive>();
  described->key = PrimitiveKey(operation, attributes, options);
  described->id = Fingerprint(described->key);
  described->operation = std::move(operation);
  described->attributes = std::move(attributes);
  return described;
}

absl::Status PrimitiveCatalog::Remember(std::shared_ptr<const DescribedPrimitive> described) {
  threading::MutexLock lock(&mutex_);
  const auto known = by_id_.find(described->id);
  if (known != by_id_.end()) {
    if ((*known->second)->key != described->key) {
      return absl::InternalError("two primitives have the same id");
    }
    recent_.splice(recent_.begin(), recent_, known->second);
    return absl::OkStatus();
  }
  bytes_ += Weight(*described);
  recent_.push_front(std::move(described));
  by_id_[recent_.front()->id] = recent_.begin();
  while (bytes_ > capacity_bytes_ && recent_.size() > 1) {
    bytes_ -= Weight(*recent_.back());
    by_id_.erase(recent_.back()->id);
    recent_.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const DescribedPrimitive>> PrimitiveCatalog::Find(
    const std::string& id) {
  threading::MutexLock lock(&mutex_);
  const auto known = by_id_.find(id);
  if (known == by_id_.end()) {
    return absl::NotFoundError(absl::StrCat("no primitive ", Quoted(id), "; Create it (again)"));
  }
  recent_.splice(recent_.begin(), recent_, known->second);
  return *known->second;
}

}  // namespace tilewire::service
