// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/scratchpad.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr size_t kShardCount = 64;
// Sizes are rounded up to pages, so that nearly equal requests share a buffer.
constexpr size_t kPageBytes = 4096;

// Threads are numbered as they come: each has a shard of its own until there are more than
// kShardCount.
size_t ShardOfThisThread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t shard = threads.fetch_add(1) % kShardCount;
  return shard;
}

}  // namespace

struct ScratchpadPool::Shards {
  struct alignas(64) Shard {
    absl::Mutex mutex;
    std::vector<AlignedBuffer> idle ABSL_GUARDED_BY(mutex);  // by ascending size
  };

  explicit Shards(int64_t max_idle_bytes) : max_idle_bytes(max_idle_bytes) {}

  const int64_t max_idle_bytes;
  std::array<Shard, kShardCount> shards;
  std::atomic<int64_t> idle_bytes{0};
  std::atomic<int64_t> leased_bytes{0};
};

ScratchpadPool::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}

ScratchpadPool::Lease& ScratchpadPool::Lease::operator=(Lease&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

ScratchpadPool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->Return(std::move(buffer_));
}

ScratchpadPool::ScratchpadPool(int64_t max_idle_bytes)
    : shards_(std::make_unique<Shards>(max_idle_bytes)) {}

ScratchpadPool::~ScratchpadPool() = default;

absl::StatusOr<ScratchpadPool::Lease> ScratchpadPool::Take(size_t bytes) {
  Lease lease;
  if (bytes == 0) return lease;
  Shards::Shard& shard = shards_->shards[ShardOfThisThread()];
  {
    absl::MutexLock lock(&shard.mutex);
    const auto found = std::lower_bound(
        shard.idle.begin(), shard.idle.end(), bytes,
        [](const AlignedBuffer& buffer, size_t wanted) { return buffer.size() < wanted; });
    if (found != shard.idle.end()) {
      lease.buffer_ = std::move(*found);
      shard.idle.erase(found);
    }
  }
  if (lease.buffer_.size() > 0) {
    shards_->idle_bytes.fetch_sub(lease.buffer_.size(), std::memory_order_relaxed);
  } else {
    const size_t rounded =
        bytes > SIZE_MAX - kPageBytes ? bytes : (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    ABSL_ASSIGN_OR_RETURN(lease.buffer_, AlignedBuffer::Allocate(rounded));
  }
  lease.pool_ = this;
  shards_->leased_bytes.fetch_add(lease.buffer_.size(), std::memory_order_relaxed);
  return lease;
}

void ScratchpadPool::Return(AlignedBuffer buffer) {
  const int64_t size = static_cast<int64_t>(buffer.size());
  shards_->leased_bytes.fetch_sub(size, std::memory_order_relaxed);
  if (shards_->idle_bytes.fetch_add(size, std::memory_order_relaxed) + size >
      shards_->max_idle_bytes) {
    shards_->idle_bytes.fetch_sub(size, std::memory_order_relaxed);
    return;
  }
  Shards::Shard& shard = shards_->shards[ShardOfThisThread()];
  absl::MutexLock lock(&shard.mutex);
  const auto place = std::lower_bound(
      shard.idle.begin(), shard.idle.end(), buffer.size(),
      [](const AlignedBuffer& idle, size_t wanted) { return idle.size() < wanted; });
  shard.idle.insert(place, std::move(buffer));
}

int64_t ScratchpadPool::idle_bytes() const { return shards_->idle_bytes.load(); }
int64_t ScratchpadPool::leased_bytes() const { return shards_->leased_bytes.load(); }

}  // namespace tilewire
