// SPDX-License-Identifier: Apache-2.0
#include "service/wire/answer_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "service/observe/steady_time.h"

namespace tilewire::service {

// A buffer inside a slice.
struct AnswerPool::Lent {
  AlignedBuffer buffer;
  std::shared_ptr<AnswerPool> pool;

  static void Return(void* lent) {
    const std::unique_ptr<Lent> owned(static_cast<Lent*>(lent));
    owned->pool->Return(std::move(owned->buffer));
  }
};

absl::StatusOr<AlignedBuffer> AnswerPool::Take(size_t size) {
  {
    threading::MutexLock lock(&mutex_);
    for (auto it = idle_.rbegin(); it != idle_.rend(); ++it) {
      if (it->buffer.size() != size) continue;
      AlignedBuffer buffer = std::move(it->buffer);
      idle_.erase(std::next(it).base());
      idle_bytes_ -= static_cast<int64_t>(size);
      return buffer;
    }
  }
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Allocate(size);
  if (buffer.ok()) return buffer;
  FreeReturnedBefore(absl::InfiniteFuture());
  return AlignedBuffer::Allocate(size);
}

void AnswerPool::Return(AlignedBuffer buffer) {
  const auto size = static_cast<int64_t>(buffer.size());
  if (size == 0) return;
  const absl::Time now = SteadyNow();
  threading::MutexLock lock(&mutex_);
  if (idle_.size() >= kMaxIdleBuffers || idle_bytes_ + size > max_idle_bytes_) return;
  idle_bytes_ += size;
  idle_.push_back({std::move(buffer), now});
}

grpc::Slice AnswerPool::AsSlice(AlignedBuffer buffer) {
  auto* lent = new Lent{std::move(buffer), shared_from_this()};
  return grpc::Slice(lent->buffer.data(), lent->buffer.size(), &Lent::Return, lent);
}

void AnswerPool::FreeReturnedBefore(absl::Time time) {
  std::vector<Idle> late;  // freed when the lock is not held
  threading::MutexLock lock(&mutex_);
  const auto end = std::find_if(idle_.begin(), idle_.end(),
                                [time](const Idle& idle) { return idle.since >= time; });
  for (auto it = idle_.begin(); it != end; ++it) {
    idle_bytes_ -= static_cast<int64_t>(it->buffer.size());
    late.push_back(std::move(*it));
  }
  idle_.erase(idle_.begin(), end);
}

int64_t AnswerPool::idle_bytes() const {
  threading::MutexLock lock(&mutex_);
  return idle_bytes_;
}

}  // namespace tilewire::service
