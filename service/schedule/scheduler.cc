// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tilewire::service {

Scheduler::Scheduler(threading::Arena* arena, int max_queue)
    : arena_(arena), limit_(int64_t{max_queue} + arena->threads()) {}

Scheduler::~Scheduler() { WaitIdle(); }

absl::Status Scheduler::Submit(absl::AnyInvocable<void()> work) {
  {
    threading::MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("the server is draining");
    if (admitted_ >= limit_) {
      return absl::UnavailableError(absl::StrCat("the queue is full: ", admitted_, " requests"));
    }
    ++admitted_;
  }
  arena_->Enqueue([this, work = std::move(work)]() mutable {
    const absl::Time start = absl::Now();
    work();
    work = nullptr;  // what it holds is gone before the request counts as ended
    Ended(absl::Now() - start);
  });
  return absl::OkStatus();
}

void Scheduler::Ended(absl::Duration run) {
  threading::MutexLock lock(&mutex_);
  mean_run_ = mean_run_ == absl::ZeroDuration() ? run : mean_run_ * 0.9 + run * 0.1;
  --admitted_;
}

void Scheduler::Drain() {
  threading::MutexLock lock(&mutex_);
  draining_ = true;
}

bool Scheduler::draining() const {
  threading::MutexLock lock(&mutex_);
  return draining_;
}

void Scheduler::WaitIdle() {
  threading::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return admitted_ == 0; };
  mutex_.Await(absl::Condition(&idle));
}

absl::Duration Scheduler::Pushback() const {
  threading::MutexLock lock(&mutex_);
  return std::clamp(mean_run_ * admitted_ / (2 * arena_->threads()), absl::Milliseconds(5),
                    absl::Seconds(5));
}

}  // namespace tilewire::service
