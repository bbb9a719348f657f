// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/scratchpad.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "engine/base/huge_pages.h"
#include "engine/base/status_macros.h"
#include "engine/threading/mutex.h"

namespace tilewire {
namespace {

constexpr size_t kShardCount = 64;
// Sizes are rounded up to pages, so that nearly equal requests share a buffer.
constexpr size_t kPageBytes = 4096;
// A buffer this many times larger is not taken: small requests would keep it forever.
constexpr size_t kMaxWaste = 4;
// For FreeIdle(): also those that have returned just now.
constexpr absl::Duration kAnyTime = -absl::InfiniteDuration();

// Threads are numbered as they come: each has a shard of its own until there are more than
// kShardCount.
size_t ShardOfThisThread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t shard = threads.fetch_add(1) % kShardCount;
  return shard;
}

}  // namespace

struct ScratchpadPool::Shards {
  struct Idle {
    AlignedBuffer buffer;
    uint64_t since = 0;  // the shard's `takes` when it returned
    absl::Time returned;
  };
  struct alignas(64) Shard {
    threading::Mutex mutex;
    std::vector<Idle> idle ABSL_GUARDED_BY(mutex);  // by ascending size
    uint64_t takes ABSL_GUARDED_BY(mutex) = 0;

    std::vector<Idle>::iterator AtLeast(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return std::lower_bound(idle.begin(), idle.end(), bytes, [](const Idle& one, size_t wanted) {
        return one.buffer.size() < wanted;
      });
    }
    void Insert(AlignedBuffer buffer, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      const auto place = AtLeast(buffer.size());
      idle.insert(place, {std::move(buffer), takes, now});
    }
    // The smallest that fits, or nothing.
    AlignedBuffer Remove(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      const auto found = AtLeast(bytes);
      if (found == idle.end() || found->buffer.size() / kMaxWaste > bytes) return AlignedBuffer();
      AlignedBuffer buffer = std::move(found->buffer);
      idle.erase(found);
      return buffer;
    }
    // Removes the buffers that nothing has needed for so long that nothing is likely to, and those
    // that returned before `time`.
    std::vector<Idle> RemoveStale(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      std::vector<Idle> removed;
      for (auto one = idle.begin(); one != idle.end();) {
        if (takes - one->since <= kKeptTakes && one->returned >= time) {
          ++one;
        } else {
          removed.push_back(std::move(*one));
          one = idle.erase(one);
        }
      }
      return removed;
    }
  };

  explicit Shards(int64_t max_idle_bytes) : max_idle_bytes(max_idle_bytes) {}

  bool Exceeds(int64_t more) const {
    return idle_bytes + leased_bytes + beside_bytes + more > max_bytes;
  }

  const int64_t max_idle_bytes;
  std::atomic<int64_t> max_bytes = std::numeric_limits<int64_t>::max() / 2;
  std::array<Shard, kShardCount> shards;
  std::atomic<int64_t> idle_bytes{0};
  std::atomic<int64_t> leased_bytes{0};
  std::atomic<int64_t> beside_bytes{0};
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

void ScratchpadPool::Bound(int64_t bytes) { shards_->max_bytes = bytes; }

void ScratchpadPool::CountBeside(int64_t more) {
  shards_->beside_bytes.fetch_add(more, std::memory_order_relaxed);
  if (more > 0 && idle_bytes() > 0 && shards_->Exceeds(0)) FreeIdle(kAnyTime);
}

absl::StatusOr<AlignedBuffer> ScratchpadPool::Allocate(size_t bytes) {
  const auto more = static_cast<int64_t>(std::min<size_t>(bytes, PTRDIFF_MAX / 2));
  if (shards_->Exceeds(more)) FreeIdle(kAnyTime);
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Allocate(bytes);
  if (buffer.ok() || FreeIdle(kAnyTime) == 0) return buffer;
  return AlignedBuffer::Allocate(bytes);
}

absl::StatusOr<ScratchpadPool::Lease> ScratchpadPool::Take(size_t bytes) {
  Lease lease;
  if (bytes == 0) return lease;
  const size_t rounded =
      bytes > SIZE_MAX - kPageBytes ? bytes : (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  Shards::Shard& shard = shards_->shards[ShardOfThisThread()];
  {
    threading::MutexLock lock(&shard.mutex);
    ++shard.takes;
    lease.buffer_ = shard.Remove(rounded);
  }
  if (lease.buffer_.size() > 0) {
    shards_->idle_bytes.fetch_sub(lease.buffer_.size(), std::memory_order_relaxed);
  } else {
    ABSL_ASSIGN_OR_RETURN(lease.buffer_, Allocate(rounded));
    PreferHugePages(lease.buffer_.data(), lease.buffer_.size());
  }
  lease.pool_ = this;
  shards_->leased_bytes.fetch_add(lease.buffer_.size(), std::memory_order_relaxed);
  return lease;
}

void ScratchpadPool::Return(AlignedBuffer buffer) {
  const int64_t size = static_cast<int64_t>(buffer.size());
  shards_->leased_bytes.fetch_sub(size, std::memory_order_relaxed);
  const int64_t idle = shards_->idle_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  if (idle > shards_->max_idle_bytes || shards_->Exceeds(0)) {
    shards_->idle_bytes.fetch_sub(size, std::memory_order_relaxed);
    return;
  }
  Shards::Shard& shard = shards_->shards[ShardOfThisThread()];
  const absl::Time now = absl::Now();
  std::vector<Shards::Idle> stale;  // freed when the lock is not held
  {
    threading::MutexLock lock(&shard.mutex);
    shard.Insert(std::move(buffer), now);
    stale = shard.RemoveStale(absl::InfinitePast());
  }
  for (const Shards::Idle& idle : stale) {
    shards_->idle_bytes.fetch_sub(idle.buffer.size(), std::memory_order_relaxed);
  }
}

int64_t ScratchpadPool::FreeIdle(absl::Duration unused_for) {
  const absl::Time time = absl::Now() - unused_for;
  int64_t freed = 0;
  for (Shards::Shard& shard : shards_->shards) {
    std::vector<Shards::Idle> removed;  // freed when the lock is not held
    {
      threading::MutexLock lock(&shard.mutex);
      removed = shard.RemoveStale(time);
    }
    for (const Shards::Idle& idle : removed) freed += static_cast<int64_t>(idle.buffer.size());
  }
  shards_->idle_bytes.fetch_sub(freed, std::memory_order_relaxed);
  return freed;
}

int64_t ScratchpadPool::idle_bytes() const { return shards_->idle_bytes.load(); }
int64_t ScratchpadPool::leased_bytes() const { return shards_->leased_bytes.load(); }

}  // namespace tilewire
